#!/usr/bin/env bash
# deploy/dev/try_image.sh: builds the image from the Dockerfile and runs it, without a container daemon or a registry.
#
# The base image is a Debian that debootstrap makes; buildah builds with chroot isolation. The server is started with the
# image's own user, environment, entry point and command; tensordctl inside the image must find it healthy, a graph must give
# NumPy's numbers, and SIGTERM must end it cleanly; no file of it may take another user's rights, and its list of what is in
# the binary must be there. Needs root, debootstrap and buildah; MIRROR=URL names another Debian mirror, IMAGE_STORE=FOLDER keeps
# the images for the next trial, BUILD=build/release takes the binaries of that build and makes the rest of the image alone.
# TARGET=cuda tries the image with NVIDIA's libraries: without a GPU it says what it lacks, on the processor it runs as the other
# one does, and each library is found and opened, beside the driver of the host CUDA device of BUILD. WHEELS=FOLDER has the files
# that pip would fetch.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

target=${TARGET:-runtime}
image=localhost/tensord:$target
[[ $target != cuda || -n ${BUILD:-} ]] || { echo "TARGET=cuda needs BUILD, with the target tensord_host_cuda" >&2; exit 2; }

work=$(mktemp --directory --tmpdir tensord-image.XXXXXX)
store=${IMAGE_STORE:-$work/store}
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
runner=''
container=''

in_store() { buildah --root "$store" --runroot "$store.run" "$@"; }

# The process called tensord among those that PROCESS has started, and they in turn.
server_below() {
  local child
  for child in $(pgrep --parent "$1"); do
    if [[ $(<"/proc/$child/comm") == tensord ]]; then
      echo "$child"
    else
      server_below "$child"
    fi
  done
}

clean_up() {
  [[ -z $runner ]] || kill -TERM "$(server_below "$runner")" "$runner" 2>/dev/null || true
  [[ -z $container ]] || in_store rm "$container" >/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT

make_base_image() {
  in_store inspect --type image localhost/debian:12 >/dev/null 2>&1 && return 0
  echo "== base image"
  debootstrap --variant=minbase bookworm "$work/debian" ${MIRROR:+"$MIRROR"} >"$work/debootstrap.log"
  tar -C "$work/debian" --exclude=./dev/* --exclude=./proc/* --exclude=./sys/* -cf "$work/debian.tar" .
  local base
  base=$(in_store from scratch)
  in_store add --quiet "$base" "$work/debian.tar" / >/dev/null
  in_store config --cmd bash --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$base"
  in_store commit --quiet "$base" localhost/debian:12 >/dev/null
  in_store rm "$base" >/dev/null
  rm -rf "$work/debian" "$work/debian.tar"
}

# The JSON list of strings FIELD of the image's configuration, one a line.
image_setting() {
  in_store inspect --type image "$image" |
    /usr/bin/python3 -c 'import json, sys; print("\n".join(json.load(sys.stdin)["OCIv1"]["config"].get(sys.argv[1]) or []))' "$1"
}

# Copies the parts of an existing build that the stage "build" leaves: FOLDER.
copy_build() {
  mkdir -p "$1/src/build/release/bin"
  for binary in tensord tensordctl; do
    cp "$BUILD/bin/$binary" "$1/src/build/release/bin/"
    strip "$1/src/build/release/bin/$binary"
  done
  mkdir "$1/src/build/notices"
  /usr/bin/python3 deploy/dev/spdx.py "$BUILD" "$1/src/build/notices" >"$1/src/build/notices/tensord.spdx.json"
}

# Without a driver the image says so. With that of the host CUDA device all of NVIDIA's libraries are found where they are.
try_cuda() {
  local folder said
  folder=$(in_store mount "$container")/trial-cuda
  said=$(in_store run "$container" -- tensord --check-config --set=devices=cuda:0 2>&1 || true)
  echo "  $said"
  [[ $said == *'device cuda:0 is not there: libcuda.so.1 was not found'* ]] || exit 1
  mkdir "$folder"
  cp "$BUILD/hostcuda/libtensord_host_cuda.so" "$folder/libcuda.so.1"
  in_store run "$container" -- tensord --check-config --set=devices=cuda:0 --set=cuda.libraries=/trial-cuda >"$work/libraries"
  sed 's/^/  /' "$work/libraries"
  for library in nvrtc cublasLt cublas cusolver cufft; do
    grep -q "^library lib$library\.so\.[0-9]* [0-9.]*, /opt/nvidia/lib/" "$work/libraries" || exit 1
  done
  ! grep missing "$work/libraries" || exit 1
  ls "$folder/../usr/share/doc/nvidia-cuda-libraries"
  rm -rf "$folder"
}

make_base_image
echo "== image"
options=(--build-arg BASE=localhost/debian:12 --target "$target")
if [[ -n ${BUILD:-} ]]; then
  copy_build "$work/built"
  options+=(--build-context "build=$work/built")
fi
if [[ -n ${WHEELS:-} ]]; then
  options+=(--volume "$WHEELS:/wheels:ro" --build-arg PIP_NO_INDEX=1 --build-arg PIP_FIND_LINKS=/wheels)
fi
in_store bud --pull-never --format docker --layers "${options[@]}" --tag "$image" .

echo "== start"
# On the processor.
mapfile -t command < <(image_setting Entrypoint; image_setting Cmd | grep -v devices=cuda)
container=$(in_store from --pull-never "$image")
[[ $target != cuda ]] || try_cuda
mkfifo "$work/stdout"
in_store run "$container" -- "${command[@]}" >"$work/stdout" 2>"$work/server.log" </dev/null &
runner=$!
exec {output}<"$work/stdout"
ready=''
while read -r -t 120 -u "$output" line; do
  echo "  $line"
  [[ $line == 'listening grpc '* ]] && ready=${line#listening grpc }
  [[ $line == 'listening metrics '* && -n $ready ]] && break
done
[[ -n $ready ]] || { cat "$work/server.log" >&2; exit 1; }
root=$(in_store mount "$container")
server=$(server_below "$runner")

echo "== what is in it"
rights=$(find "$root" -xdev -type f -perm /6000)
[[ -z $rights ]] || { echo "these take another user's rights: $rights" >&2; exit 1; }
/usr/bin/python3 - "$root/usr/share/doc/tensord" <<'PYTHON'
import json, os, sys

folder = sys.argv[1]
parts = json.load(open(os.path.join(folder, "tensord.spdx.json")))["packages"]
print("  in the binary:", ", ".join(f"{part['name']} {part['versionInfo']}" for part in parts[1:]))
assert {"grpc", "abseil", "ducc0"} <= {part["name"] for part in parts}
PYTHON
in_store inspect --type image "$image" |
  /usr/bin/python3 -c 'import json, sys; print("  version", json.load(sys.stdin)["OCIv1"]["config"]["Labels"]["org.opencontainers.image.version"])'

echo "== health and a graph, as the image's user"
in_store run "$container" -- tensordctl health
/usr/bin/python3 deploy/dev/demo_arrays.py write "$work"
mkdir "$root/trial"
cp clients/examples/graphs/*.json "$work"/*.npy "$root/trial"
chown --recursive 65532:65532 "$root/trial"
in_store run "$container" -- tensordctl run /trial/tanh_affine.json --input a=/trial/a.npy --input x=/trial/x.npy \
  --input b=/trial/b.npy --output y=/trial/y.npy
in_store run "$container" -- tensordctl run /trial/softmax_layer.json --input x=/trial/features.npy \
  --input w=/trial/weights.npy --input b=/trial/bias.npy --output p=/trial/p.npy
/usr/bin/python3 deploy/dev/demo_arrays.py compare "$root/trial"
echo "  server runs as uid $(awk '/^Uid:/ { print $2 }' "/proc/$server/status")"

echo "== stop"
kill -TERM "$server"
status=0
wait "$runner" || status=$?
runner=''
[[ $status -eq 0 ]] || { tail -n 20 "$work/server.log" >&2; echo "the server ended with status $status" >&2; exit 1; }
in_store images --format '{{.Name}}:{{.Tag}} {{.Size}}' | grep tensord
echo "== the image works"
