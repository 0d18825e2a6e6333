# shellcheck shell=bash
# Sourced. for_each_generated_page FUNCTION: calls FUNCTION PAGE COMMAND… for each line of generated.txt.

generated_page_programs() {
  awk '!/^#/ && NF { print $2 }' deploy/dev/generated.txt | sort -u
}

for_each_generated_page() {
  local function=$1 page program arguments status=0
  while read -r page program arguments <&3; do
    [[ -z $page || $page == '#'* ]] && continue
    # shellcheck disable=SC2086  # the arguments are words
    "$function" "$page" "build/release/bin/$program" $arguments || status=1
  done 3<deploy/dev/generated.txt
  return $status
}
