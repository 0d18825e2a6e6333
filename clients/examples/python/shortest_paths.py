#!/usr/bin/env python3
"""All shortest paths of a road network: a matrix of distances squared in the algebra (min, +), and Dijkstra beside it."""

import argparse
import heapq
import math

import checkout  # noqa: F401  (finds the package in this repository; with an installed one it does nothing)
import numpy as np
import tensord as td


def random_roads(random, towns):
    """Distances between neighbours, np.inf where there is no road; roads are one-way."""
    roads = random.uniform(1, 100, (towns, towns))
    roads[random.random((towns, towns)) < 0.97] = np.inf
    np.fill_diagonal(roads, 0)
    return roads


def shortest_paths(roads):
    """Each squaring doubles how many roads a path may have."""
    square = td.compile(lambda paths: paths @ paths, td.spec(("n", "n")), algebra="min_plus")
    for _ in range(math.ceil(math.log2(len(roads)))):
        roads = square(roads)
    return roads


def route(roads, paths, town, end):
    """The towns of a shortest path: the next one is a neighbour from which the rest is as long as it must be."""
    towns = [town]
    while town != end:
        others = np.flatnonzero((roads[town] < np.inf) & (np.arange(len(roads)) != town))
        town = int(min(others, key=lambda other: roads[town, other] + paths[other, end]))
        towns.append(town)
    return towns


def dijkstra(roads, start):
    distances, queue = np.full(len(roads), np.inf), [(0.0, start)]
    while queue:
        distance, town = heapq.heappop(queue)
        if distance >= distances[town]:
            continue
        distances[town] = distance
        for other in np.flatnonzero(roads[town] < np.inf):
            heapq.heappush(queue, (distance + roads[town, other], other))
    return distances


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--target", default=td.default_target(), help="the server, unix:/path or host:port (%(default)s)"
    )
    arguments = parser.parse_args()
    roads = random_roads(np.random.default_rng(0), 150)
    with td.connect(arguments.target):
        paths = shortest_paths(roads)
    print(f"from town 0 to town 100: {paths[0, 100]:.1f} by {route(roads, paths, 0, 100)}")
    print(f"pairs without a path: {int(np.isinf(paths).sum())}")
    wanted = np.array([dijkstra(roads, start) for start in range(len(roads))])
    print("as Dijkstra finds:", bool(np.allclose(paths, wanted, rtol=1e-12)))


if __name__ == "__main__":
    main()
