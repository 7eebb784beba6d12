/* FORWARD name, version: a hidden function that jumps to that version of the C library's. A jump leaves
   the return address, by which dlopen and dlsym know their caller. */
.macro FORWARD name, version
  .symver older_\name, \name@\version
  .globl \name
  .hidden \name
  .type \name, @function
\name:
  endbr64
  jmp *older_\name@GOTPCREL(%rip)
  .size \name, . - \name
.endm
.section .note.GNU-stack, "", @progbits
.text
