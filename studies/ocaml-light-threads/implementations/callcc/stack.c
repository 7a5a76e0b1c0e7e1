/* Copies the stack of OCaml 4's byte code machine into the heap and back. It depends on the internals of that machine,
   so it works only for byte code of OCaml 4.07 to 4.13. */

#define CAML_NAME_SPACE
#define CAML_INTERNALS
#include <caml/alloc.h>
#include <caml/domain_state.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <caml/stacks.h>
#include <string.h>

enum { SPARE_WORDS = 1024 };

/* A copy is a block: the position of the innermost exception handler from the end of the stack, then the words. */
static value copied(void) {
    mlsize_t words = Caml_state->stack_high - Caml_state->extern_sp;
    value handler = Val_long(Caml_state->stack_high - Caml_state->trapsp);
    value copy;
    if (words + 1 <= Max_young_wosize) {
        copy = caml_alloc_small(words + 1, 0);
        Field(copy, 0) = handler;
        memcpy(&Field(copy, 1), Caml_state->extern_sp, words * sizeof(value));
    } else {
        copy = caml_alloc_shr(words + 1, 0);
        Field(copy, 0) = handler;
        for (mlsize_t i = 0; i < words; i++) caml_initialize(&Field(copy, i + 1), Caml_state->extern_sp[i]);
    }
    return copy;
}

static void put_back(value copy) {
    mlsize_t words = Wosize_val(copy) - 1;
    if ((mlsize_t)(Caml_state->stack_high - Caml_state->stack_low) < words + SPARE_WORDS)
        caml_realloc_stack(words + SPARE_WORDS);
    Caml_state->extern_sp = Caml_state->stack_high - words;
    memcpy(Caml_state->extern_sp, &Field(copy, 1), words * sizeof(value));
    Caml_state->trapsp = Caml_state->stack_high - Long_val(Field(copy, 0));
}

/* For a number, returns Copied of the present stack. For a pair (stack, arrival), restores the stack, returns arrival. */
value light_switch_stacks(value request) {
    if (Is_block(request)) {
        value arrival = Field(request, 1);
        put_back(Field(request, 0));
        return arrival;
    }
    CAMLparam0();
    CAMLlocal1(copy);
    copy = copied();
    value arrival = caml_alloc_small(1, 0);
    Field(arrival, 0) = copy;
    CAMLreturn(arrival);
}
