/* One exported symbol for every driver function without a hook. It jumps to the real function, looked up at the
 * first call.
 *
 * Any thread. All argument registers and the stack pass through untouched, whatever the signature. Only r10 and r11
 * are used, which the x86-64 calling convention reserves for such code. A slot is empty until
 * spillway_find_forward_target fills it (bss: nothing to relocate at program start). Filling it twice writes the same
 * address.
 */
#if !defined(__x86_64__)
#error "The forwarders and the dlsym entry point are written for x86-64 only"
#endif

.macro forward name
        .section .rodata.forwarded_names, "a", @progbits
.Lname_\name:
        .asciz  "\name"
        .section .bss.forward_slots, "aw", @nobits
        .balign 8
.Lslot_\name:
        .skip   8
        .text
        .balign 16
        .globl  \name
        .type   \name, @function
\name:
        .cfi_startproc
        endbr64
        movq    .Lslot_\name(%rip), %r11
        testq   %r11, %r11
        je      1f
        jmpq    *%r11
1:      leaq    .Lname_\name(%rip), %r10
        leaq    .Lslot_\name(%rip), %r11
        jmp     resolve_and_jump
        .cfi_endproc
        .size   \name, . - \name
.endm

/* r10: the symbol's name, r11: its slot. Saves all registers that may hold an argument, finds the target, jumps there. */
        .text
        .balign 16
        .type   resolve_and_jump, @function
resolve_and_jump:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        andq    $-16, %rsp
        subq    $192, %rsp
        movq    %rdi, (%rsp)
        movq    %rsi, 8(%rsp)
        movq    %rdx, 16(%rsp)
        movq    %rcx, 24(%rsp)
        movq    %r8, 32(%rsp)
        movq    %r9, 40(%rsp)
        movq    %rax, 48(%rsp)
        movaps  %xmm0, 64(%rsp)
        movaps  %xmm1, 80(%rsp)
        movaps  %xmm2, 96(%rsp)
        movaps  %xmm3, 112(%rsp)
        movaps  %xmm4, 128(%rsp)
        movaps  %xmm5, 144(%rsp)
        movaps  %xmm6, 160(%rsp)
        movaps  %xmm7, 176(%rsp)
        movq    %r10, %rdi
        movq    %r11, %rsi
        call    spillway_find_forward_target
        movq    %rax, %r11
        movq    (%rsp), %rdi
        movq    8(%rsp), %rsi
        movq    16(%rsp), %rdx
        movq    24(%rsp), %rcx
        movq    32(%rsp), %r8
        movq    40(%rsp), %r9
        movq    48(%rsp), %rax
        movaps  64(%rsp), %xmm0
        movaps  80(%rsp), %xmm1
        movaps  96(%rsp), %xmm2
        movaps  112(%rsp), %xmm3
        movaps  128(%rsp), %xmm4
        movaps  144(%rsp), %xmm5
        movaps  160(%rsp), %xmm6
        movaps  176(%rsp), %xmm7
        leave
        .cfi_def_cfa %rsp, 8
        jmpq    *%r11
        .cfi_endproc
        .size   resolve_and_jump, . - resolve_and_jump

#define SPILLWAY_PASS(name, ...) forward name
#include "interposer/driver/hook_table.inc"

        .section .note.GNU-stack, "", @progbits
