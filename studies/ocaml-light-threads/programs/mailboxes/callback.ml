
(* Mvars for continuations: `wait` makes a waiter from a continuation, `wake` continues a waiter later. *)
type 'a cell = Empty | Full of 'a | Reader of 'a waiter | Writer of 'a * 'a * unit waiter
type 'a mvar = { mutable cell : 'a cell }

let make () = { cell = Empty }

let put mvar value next =
  match mvar.cell with
  | Empty ->
      mvar.cell <- Full value;
      next ()
  | Full first -> mvar.cell <- Writer (first, value, wait next)
  | Reader reader ->
      mvar.cell <- Empty;
      wake reader value;
      next ()
  | Writer _ -> failwith "two writers"

let take mvar next =
  match mvar.cell with
  | Empty -> mvar.cell <- Reader (wait next)
  | Full value ->
      mvar.cell <- Empty;
      next value
  | Writer (first, value, writer) ->
      mvar.cell <- Full value;
      wake writer ();
      next first
  | Reader _ -> failwith "two readers"
