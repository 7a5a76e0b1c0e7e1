# Build perftrail's programs for another machine with Zig's C compiler: `make release` passes ZIG, TARGET and GLIBC.
#
# Zig has musl and the symbols of each version of glibc for each architecture. So the launcher is linked statically, and
# the preloaded objects need no later version than GLIBC, whatever machine builds them.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${TARGET})
set(CMAKE_C_COMPILER ${ZIG} cc -target ${TARGET}-linux-musl)
set(CMAKE_AR ${ZIG_AR})
set(CMAKE_RANLIB true)
set(CMAKE_C_COMPILER_AR ${ZIG_AR})
set(CMAKE_C_COMPILER_RANLIB true)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ZIG ZIG_AR TARGET)
set(PERFTRAIL_HOST_CC ${ZIG} cc -target ${TARGET}-linux-gnu.${GLIBC})
set(PERFTRAIL_UNWINDER -lunwind)
