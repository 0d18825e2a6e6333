# cmake -DSOURCE_DIR=… -DOUTPUT=… -P write_git_revision.cmake: the header OUTPUT, which says of which revision SOURCE_DIR is. Asked at
# every build; written only where it has changed, so that one file is compiled again then and none otherwise. The variable
# TENSORD_GIT_REVISION of the environment goes first: an image is built without the repository.
set(revision "$ENV{TENSORD_GIT_REVISION}")
if(NOT revision)
  execute_process(COMMAND git --no-optional-locks describe --always --abbrev=12 --dirty --exclude=* WORKING_DIRECTORY ${SOURCE_DIR}
                  OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT revision MATCHES "^[A-Za-z0-9._-]+$")
  set(revision unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define TENSORD_GIT_REVISION \"${revision}\"\n")
