# Finds the C headers of ONNX Runtime. No library is linked: a plug-in is handed the API when it is loaded.
#
# Looks at ORT_INCLUDE_DIR, then below ORT_ROOT (release archive, NuGet package, source tree, unpacked .deb), both as CMake
# or environment variables, then in the system's include folders. Sets OrtHeaders_FOUND, ORT_INCLUDE_DIR, ORT_HEADER_API and
# the target ort::headers.
find_path(ORT_INCLUDE_DIR onnxruntime_ep_c_api.h
  HINTS "$ENV{ORT_INCLUDE_DIR}" "${ORT_ROOT}" "$ENV{ORT_ROOT}"
  PATH_SUFFIXES include include/onnxruntime onnxruntime build/native/include usr/include/onnxruntime
                include/onnxruntime/core/session)

if(ORT_INCLUDE_DIR)
  file(STRINGS "${ORT_INCLUDE_DIR}/onnxruntime_c_api.h" line REGEX "^#define ORT_API_VERSION [0-9]+")
  string(REGEX REPLACE ".*ORT_API_VERSION ([0-9]+).*" "\\1" ORT_HEADER_API "${line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OrtHeaders REQUIRED_VARS ORT_INCLUDE_DIR VERSION_VAR ORT_HEADER_API)

if(OrtHeaders_FOUND AND NOT TARGET ort::headers)
  add_library(ort::headers INTERFACE IMPORTED)
  set_target_properties(ort::headers PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${ORT_INCLUDE_DIR}"
                                                INTERFACE_INCLUDE_DIRECTORIES "${ORT_INCLUDE_DIR}")
endif()
