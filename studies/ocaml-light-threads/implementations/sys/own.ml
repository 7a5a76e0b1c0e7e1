(* Threads of OCaml's Thread module: with -thread the system's, with -vmthread those of the byte code machine. *)

let gate = Mutex.create ()
let () = Mutex.lock gate

let spawn body =
  incr Measured.threads;
  let behind_gate () =
    Mutex.lock gate;
    Mutex.unlock gate;
    body ()
  in
  ignore (Thread.create behind_gate ())

let lock = Mutex.create ()
let ended = Condition.create ()
let over = ref false

let start () =
  Mutex.unlock gate;
  Mutex.lock lock;
  while not !over do
    Condition.wait ended lock
  done;
  Mutex.unlock lock

(* The thread that stops the program waits for its end, like every other. *)
let stop () =
  Mutex.lock lock;
  over := true;
  Condition.signal ended;
  Mutex.unlock lock;
  while true do
    Thread.delay 1000.
  done
