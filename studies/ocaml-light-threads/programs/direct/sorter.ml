(* A list sorted by a network with a thread for each comparator; with -d it only creates the network. *)

open Light

let comparator x y ~low ~high =
  let rec compare_on () =
    let a : int = take x in
    let b = take y in
    put low (if a < b then a else b);
    put high (if a < b then b else a);
    compare_on ()
  in
  spawn compare_on

let () =
  let inputs, outputs = Network.triangle Measured.size ~comparator in
  let sorted = Array.make Measured.size 0 in
  spawn (fun () -> Array.iteri (fun i v -> put inputs.(i) v) (Network.values Measured.size));
  spawn (fun () ->
      Array.iteri (fun i wire -> sorted.(i) <- take wire) outputs;
      stop ());
  if Measured.only_set_up then Measured.report ~answer:!Measured.threads;
  start ();
  Measured.report ~answer:(Network.answer sorted)
