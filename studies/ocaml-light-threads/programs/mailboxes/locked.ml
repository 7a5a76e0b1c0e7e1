
(* Mvars for threads that can be interrupted anywhere, each with a lock and a condition. *)
type 'a mvar = { lock : Mutex.t; changed : Condition.t; mutable value : 'a option }

let make () = { lock = Mutex.create (); changed = Condition.create (); value = None }

let put mvar value =
  Mutex.lock mvar.lock;
  while (match mvar.value with None -> false | Some _ -> true) do
    Condition.wait mvar.changed mvar.lock
  done;
  mvar.value <- Some value;
  Condition.signal mvar.changed;
  Mutex.unlock mvar.lock

let rec taken mvar =
  match mvar.value with
  | None ->
      Condition.wait mvar.changed mvar.lock;
      taken mvar
  | Some value -> value

let take mvar =
  Mutex.lock mvar.lock;
  let value = taken mvar in
  mvar.value <- None;
  Condition.signal mvar.changed;
  Mutex.unlock mvar.lock;
  value
