# Makes lamella/graph/view/page.inc: the style sheet and the scripts of the graph page as strings.
foreach(file page.css page_layout.js page.js)
  string(REPLACE "." "_" name "${file}")
  file(READ "${CMAKE_CURRENT_LIST_DIR}/${file}" ${name})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/${file}")
endforeach()
configure_file("${CMAKE_CURRENT_LIST_DIR}/page.inc.in"
               "${LAMELLA_GENERATED_DIR}/lamella/graph/view/page.inc" @ONLY)
