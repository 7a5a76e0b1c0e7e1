#!/bin/sh
# Builds OCaml 4.06.0 from its source in $1, then the programs with the threads of its byte code machine (own.ml) and with
# tramp ($2).
set -eu
here=$(dirname "$0")
(
  cd "$1"
  # The release does not link, because a module is missing. The options are for present-day C compilers.
  sed -i 's|$(LIB)/char.cmo|$(LIB)/char.cmo $(LIB)/uchar.cmo|' otherlibs/threads/Makefile
  ./configure -cc "gcc -fcommon" -aspp "gcc -c" -no-debugger -no-ocamldoc -no-graph
  make coldstart
  make ocamlc ocamllex ocamltools library
  make otherlibraries OTHERLIBRARIES="unix threads"
)
export OCAMLLIB="$1/stdlib" NATIVE=
compiler="$1/boot/ocamlrun $1/ocamlc -custom -ccopt -I$1/byterun -ccopt -L$1/byterun"
export BYTE="$compiler -I $1/otherlibs/unix unix.cma"
sh "$here/build.sh" monadic "$2" callback tramp
export BYTE="$compiler -vmthread -I $1/otherlibs/threads -I $1/otherlibs/unix threads.cma unix.cma"
sh "$here/build.sh" direct own.ml locked vm
