(* First class continuations: `stack.c` copies the whole stack of the byte code machine into the heap and back.

   Both use the one call in `switch`: a restored stack was copied during that call, so the machine continues correctly
   after it. *)

type stack

(* The result of a switch: a stack that was just copied, or the value with which an earlier one was restored. *)
type arrival = Copied of stack | Back of Obj.t

external switch_stacks : Obj.t -> arrival = "light_switch_stacks"

let switch request = switch_stacks request
let copy () = switch (Obj.repr 0)
let put_back (stack : stack) value = ignore (switch (Obj.repr (stack, Back value)))

type task = Begin of (unit -> unit) | Go_on of stack * Obj.t

let ready : task Queue.t = Queue.create ()
let scheduler = ref None

let leave () =
  match !scheduler with
  | Some stack ->
      put_back stack (Obj.repr ());
      assert false
  | None -> failwith "not started"

type 'a waiter = stack

let suspend give =
  match copy () with
  | Copied stack ->
      give stack;
      leave ()
  | Back value -> Obj.obj value

let spawn body =
  incr Measured.threads;
  Queue.push (Begin body) ready

exception Stop

let stop () = raise Stop

let rec run () =
  (match Queue.pop ready with Begin body -> body () | Go_on (stack, value) -> put_back stack value);
  run ()

let start () =
  try
    (match copy () with Copied stack -> scheduler := Some stack | Back _ -> ());
    run ()
  with Queue.Empty | Stop -> ()

let wake stack value = Queue.push (Go_on (stack, Obj.repr value)) ready
