(* A list sorted by a network with a thread for each comparator; with -d it only creates the network. *)

open Light

let comparator x y ~low ~high =
  let rec compare_on () =
    take x >>= fun (a : int) ->
    take y >>= fun b ->
    put low (if a < b then a else b) >>= fun () -> put high (if a < b then b else a) >>= compare_on
  in
  spawn compare_on

let () =
  let inputs, outputs = Network.triangle Measured.size ~comparator in
  let values = Network.values Measured.size and sorted = Array.make Measured.size 0 in
  let rec feed i () = if i = Measured.size then fin else put inputs.(i) values.(i) >>= feed (i + 1) in
  let rec drain i () =
    if i = Measured.size then stop ()
    else
      take outputs.(i) >>= fun value ->
      sorted.(i) <- value;
      drain (i + 1) ()
  in
  spawn (feed 0);
  spawn (drain 0);
  if Measured.only_set_up then Measured.report ~answer:!Measured.threads;
  start ();
  Measured.report ~answer:(Network.answer sorted)
