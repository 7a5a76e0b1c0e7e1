#!/bin/sh
# Builds OCaml 5.3.0 from its source in $1, then the programs with effects (own.ml) and with tramp ($2).
set -eu
here=$(dirname "$0")
(
  cd "$1"
  ./configure --disable-ocamldoc --disable-debugger --disable-ocamltest --disable-debug-runtime \
    --disable-instrumented-runtime
  make -j"$(nproc)" coldstart
  make -j"$(nproc)" ocamlc ocamlopt runtimeopt
  make -j"$(nproc)" libraryopt ocamltools
  make -C otherlibs/unix all allopt
)
export OCAMLLIB="$1/stdlib"
run="$1/boot/ocamlrun"
export BYTE="$run $1/ocamlc -custom -ccopt -I$1/runtime -ccopt -L$1/runtime -I $1/otherlibs/unix unix.cma"
export NATIVE="$run $1/ocamlopt -ccopt -L$1/runtime -I $1/otherlibs/unix unix.cmxa"
sh "$here/build.sh" monadic "$2" callback tramp
sh "$here/build.sh" direct own.ml suspending effects
