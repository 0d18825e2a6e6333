# Included by cmake --install: the unit of systemd and its user, the configuration, and the notices of the libraries that are
# part of the binaries. file(INSTALL) puts $DESTDIR before a path by itself.

# As GNU has it: programs below /usr are configured in /etc.
set(configuration_folder ${CMAKE_INSTALL_PREFIX}/etc)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(configuration_folder /etc)
endif()
set(configuration ${configuration_folder}/tensord/tensord.textproto)
# An administrator's settings stay.
if(NOT EXISTS "$ENV{DESTDIR}${configuration}")
  file(INSTALL DESTINATION ${configuration_folder}/tensord TYPE FILE FILES ${source_folder}/deploy/config/tensord.textproto)
endif()

set(unit_file ${build_folder}/install/tensord.service)
include(${source_folder}/deploy/cmake/service_unit.cmake)
file(INSTALL DESTINATION ${CMAKE_INSTALL_PREFIX}/lib/systemd/system TYPE FILE FILES ${unit_file})
file(INSTALL DESTINATION ${CMAKE_INSTALL_PREFIX}/lib/sysusers.d TYPE FILE FILES ${source_folder}/deploy/systemd/tensord.sysusers
     RENAME tensord.conf)

set(notices ${build_folder}/install/notices)
file(REMOVE_RECURSE ${notices})
file(MAKE_DIRECTORY ${notices})
execute_process(COMMAND python3 ${source_folder}/deploy/dev/spdx.py ${build_folder} ${notices}
                OUTPUT_FILE ${notices}/tensord.spdx.json RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "deploy/dev/spdx.py does not tell which libraries are part of the binaries")
endif()
file(INSTALL DESTINATION ${notices_folder} TYPE DIRECTORY FILES ${notices}/)
