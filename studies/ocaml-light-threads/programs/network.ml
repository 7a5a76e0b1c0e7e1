(* The triangle of comparators of `sorter`. Each column moves the largest value to the end; the other wires go into the
   next, shorter column. *)

let values n =
  let state = ref 42 in
  Array.init n (fun _ ->
      state := ((!state * 1103515245) + 12345) land 0x7fffffff;
      !state lsr 8 mod 100000)

(* Returns the input wires and the output wires; starts `comparator` with two input and two output wires for each
   crossing. *)
let triangle n ~comparator =
  let outputs = Array.init n (fun _ -> Light.make ()) in
  let rec columns wires =
    let last = Array.length wires - 1 in
    if last > 0 then begin
      let left = Array.init last (fun _ -> if last = 1 then outputs.(0) else Light.make ()) in
      let carried = ref wires.(0) in
      for row = 1 to last do
        let high = if row = last then outputs.(last) else Light.make () in
        comparator !carried wires.(row) ~low:left.(row - 1) ~high;
        carried := high
      done;
      columns left
    end
  in
  let inputs = Array.init n (fun _ -> Light.make ()) in
  columns inputs;
  (inputs, outputs)

(* Fails if the values are not sorted. *)
let answer sorted =
  Array.iteri (fun i v -> if i > 0 && sorted.(i - 1) > v then failwith "not sorted") sorted;
  Array.fold_left (fun sum v -> ((sum * 31) + v) land 0xffffffffffff) 7 sorted
