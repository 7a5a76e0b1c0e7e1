(* The arguments of a program, and its output at the end. *)

let size = int_of_string Sys.argv.(1)
let only_set_up = Array.length Sys.argv > 2 && Sys.argv.(2) = "-d"

(* The number of created threads: Light.spawn counts them. *)
let threads = ref 0

(* OCaml 5 sums its heaps at the end of a cycle of the collector, so this ends one, after reading the clock. *)
let top_heap_words () =
  if Sys.ocaml_version.[0] = '5' then Gc.major ();
  (Gc.quick_stat ()).Gc.top_heap_words

let report ~answer =
  let used = Unix.times () in
  Printf.printf "answer %d\nthreads %d\ncpu seconds %.6f\ntop heap words %d\n%!" answer !threads
    (used.Unix.tms_utime +. used.Unix.tms_stime)
    (top_heap_words ());
  exit 0
