(* Trampolined style: each operation receives its continuation, and the rest of a thread is a closure in a queue. *)

type act = unit
type 'a io = ('a -> unit) -> unit

let ( >>= ) io next = io next
let fin = ()
let ready : (unit -> unit) Queue.t = Queue.create ()

let spawn body =
  incr Measured.threads;
  Queue.push body ready

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
