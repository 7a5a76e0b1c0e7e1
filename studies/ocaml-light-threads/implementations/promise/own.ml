(* The promise monad, our code: a missing value is a cell with the functions of the waiting threads. A promise that
   becomes another promise points to it, so loops need constant memory. *)

type 'a state = Kept of 'a | Open of ('a -> unit) list | Same of 'a io
and 'a io = { mutable state : 'a state }

type act = unit io

let return value = { state = Kept value }
let fin = return ()

let rec found promise =
  match promise.state with
  | Same other ->
      let last = found other in
      if last != other then promise.state <- Same last;
      last
  | Kept _ | Open _ -> promise

let keep promise value =
  let promise = found promise in
  match promise.state with
  | Open waiting ->
      promise.state <- Kept value;
      List.iter (fun next -> next value) waiting
  | Kept _ | Same _ -> failwith "kept twice"

(* Makes `outer`, which other threads may already have, equal to the promise that is its content. *)
let become outer inner =
  let outer = found outer and inner = found inner in
  match (inner.state, outer.state) with
  | Kept value, _ -> keep outer value
  | Open _, Open [] -> outer.state <- Same inner
  | Open those, Open these ->
      outer.state <- Open (these @ those);
      inner.state <- Same outer
  | _ -> failwith "kept twice"

let ( >>= ) promise next =
  let promise = found promise in
  match promise.state with
  | Kept value -> next value
  | Open waiting ->
      let result = { state = Open [] } in
      promise.state <- Open ((fun value -> become result (next value)) :: waiting);
      result
  | Same _ -> assert false

let ready : (unit -> unit) Queue.t = Queue.create ()

let spawn body =
  incr Measured.threads;
  Queue.push (fun () -> ignore (body ())) ready

exception Stop

let stop () = raise Stop

let start () =
  try
    while true do
      (Queue.pop ready) ()
    done
  with Queue.Empty | Stop -> ()

type 'a waiter = 'a io

let wait () =
  let promise = { state = Open [] } in
  (promise, promise)

let wake waiter value = Queue.push (fun () -> keep waiter value) ready
