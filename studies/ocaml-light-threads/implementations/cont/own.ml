(* The continuation monad: a thread is a function of its continuation. *)

type 'a io = ('a -> unit) -> unit
type act = unit io

let ( >>= ) io next last = io (fun value -> next value last)
let fin last = last ()
let ready : (unit -> unit) Queue.t = Queue.create ()

let spawn body =
  incr Measured.threads;
  Queue.push (fun () -> body () ignore) ready

exception Stop

let stop () = raise Stop

let start () =
  try
    while true do
      (Queue.pop ready) ()
    done
  with Queue.Empty | Stop -> ()

type 'a waiter = 'a -> unit

let wait next = next
let wake waiter value = Queue.push (fun () -> waiter value) ready
