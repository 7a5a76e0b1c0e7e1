
(* Mvars for promises: `wait` makes a promise and its waiter, `wake` fulfils it later. *)
type 'a cell = Empty | Full of 'a | Reader of 'a waiter | Writer of 'a * 'a * unit waiter
type 'a mvar = { mutable cell : 'a cell }

let make () = { cell = Empty }

let put mvar value =
  match mvar.cell with
  | Empty ->
      mvar.cell <- Full value;
      fin
  | Full first ->
      let promise, waiter = wait () in
      mvar.cell <- Writer (first, value, waiter);
      promise
  | Reader reader ->
      mvar.cell <- Empty;
      wake reader value;
      fin
  | Writer _ -> failwith "two writers"

let take mvar =
  match mvar.cell with
  | Empty ->
      let promise, waiter = wait () in
      mvar.cell <- Reader waiter;
      promise
  | Full value ->
      mvar.cell <- Empty;
      return value
  | Writer (first, value, writer) ->
      mvar.cell <- Full value;
      wake writer ();
      return first
  | Reader _ -> failwith "two readers"
