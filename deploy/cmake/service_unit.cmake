# Writes the unit of systemd for an installation: ${source_folder}/deploy/systemd/tensord.service as ${unit_file}, with the
# programs of ${binary_folder} and the settings ${configuration}.

# A path inside of double quotes, as systemd reads them.
function(quote_for_systemd path result)
  string(REPLACE "\\" "\\\\" path "${path}")
  string(REPLACE "\"" "\\\"" path "${path}")
  string(REPLACE "%" "%%" path "${path}")
  set(${result} "${path}" PARENT_SCOPE)
endfunction()

file(READ ${source_folder}/deploy/systemd/tensord.service unit)
set(program "${binary_folder}/tensord")
set(option "--config=${configuration}")
if("${program}${option}" MATCHES "[^-A-Za-z0-9_./=+:@,]")
  quote_for_systemd("${program}" program)
  quote_for_systemd("${option}" option)
  string(REPLACE "$" "$$" option "${option}")  # variables are put into arguments, not into a program's path
  set(program "\"${program}\"")
  set(option "\"${option}\"")
endif()
string(REPLACE "/usr/local/bin/tensord --config=/etc/tensord/tensord.textproto" "${program} ${option}" unit "${unit}")
file(WRITE "${unit_file}" "${unit}")
