/* dlsym, exported without a version: every reference to the C library's dlsym binds here. See symbol_lookup.h. */
        .text
        .balign 16
        .globl  dlsym
        .type   dlsym, @function
dlsym:
        .cfi_startproc
        endbr64
        subq    $24, %rsp
        .cfi_def_cfa_offset 32
        movq    %rdi, (%rsp)            /* SpillwayLookup{handle, name} on the stack */
        movq    %rsi, 8(%rsp)
        movq    %rsp, %rdi
        movq    24(%rsp), %rsi          /* our return address: the caller */
        call    spillway_decide_lookup
        testq   %rax, %rax
        jne     1f
        call    spillway_real_dlsym_for_entry
        movq    (%rsp), %rdi
        movq    8(%rsp), %rsi
        addq    $24, %rsp
        .cfi_def_cfa_offset 8
        jmpq    *%rax
        .cfi_def_cfa_offset 32
1:      addq    $24, %rsp
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   dlsym, . - dlsym

        .section .note.GNU-stack, "", @progbits
