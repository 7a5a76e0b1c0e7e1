
(* Mvars for threads that can be suspended anywhere: `suspend` passes on the waiter, `wake` continues it later. *)
type 'a cell = Empty | Full of 'a | Reader of 'a waiter | Writer of 'a * 'a * unit waiter
type 'a mvar = { mutable cell : 'a cell }

let make () = { cell = Empty }

let put mvar value =
  match mvar.cell with
  | Empty -> mvar.cell <- Full value
  | Full first -> suspend (fun waiter -> mvar.cell <- Writer (first, value, waiter))
  | Reader reader ->
      mvar.cell <- Empty;
      wake reader value
  | Writer _ -> failwith "two writers"

let take mvar =
  match mvar.cell with
  | Empty -> suspend (fun waiter -> mvar.cell <- Reader waiter)
  | Full value ->
      mvar.cell <- Empty;
      value
  | Writer (first, value, writer) ->
      mvar.cell <- Full value;
      wake writer ();
      first
  | Reader _ -> failwith "two readers"
