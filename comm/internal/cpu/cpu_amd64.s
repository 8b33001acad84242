//go:build !schedule

#include "textflag.h"

// func StoreRelease(p *uint64, v uint64)
TEXT ·StoreRelease(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ v+8(FP), BX
	MOVQ BX, (AX)
	RET

// func Await(p *uint64, least uint64, tries int) uint64
TEXT ·Await(SB), NOSPLIT, $0-32
	MOVQ p+0(FP), AX
	MOVQ least+8(FP), BX
	MOVQ tries+16(FP), CX
look:
	MOVQ (AX), DX
	MOVQ DX, R8
	SUBQ BX, R8
	JPL  done
	DECQ CX
	JLE  done
	PAUSE
	JMP  look
done:
	MOVQ DX, ret+24(FP)
	RET

// func AwaitEqual(p *uint64, want uint64, tries int, beside *byte) bool
TEXT ·AwaitEqual(SB), NOSPLIT, $0-33
	MOVQ p+0(FP), AX
	MOVQ want+8(FP), BX
	MOVQ tries+16(FP), CX
	MOVQ beside+24(FP), SI
look:
	MOVQ (AX), DX
	MOVB (SI), R8
	CMPQ BX, DX
	JEQ  done
	DECQ CX
	JLE  vain
	PAUSE
	JMP  look
vain:
	MOVB $0, ret+32(FP)
	RET
done:
	MOVB $1, ret+32(FP)
	RET

// func ticks() uint64
TEXT ·ticks(SB), NOSPLIT, $0-8
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET

// func Note(p *[8]uint64, key, a, b, c uint64)
TEXT ·Note(SB), NOSPLIT, $0-40
	MOVQ p+0(FP), DI
	MOVQ key+8(FP), SI
	MOVQ a+16(FP), R8
	MOVQ b+24(FP), R9
	MOVQ c+32(FP), R10
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ $0, (DI)
	MOVQ R8, 8(DI)
	MOVQ R9, 16(DI)
	MOVQ R10, 24(DI)
	MOVQ AX, 32(DI)
	MOVQ $0, 40(DI)
	MOVQ $0, 48(DI)
	MOVQ $0, 56(DI)
	MOVQ SI, (DI)
	RET

// func StoreThree(p *[3]uint64, a, b, c uint64)
TEXT ·StoreThree(SB), NOSPLIT, $0-32
	MOVQ p+0(FP), DI
	MOVQ a+8(FP), R8
	MOVQ b+16(FP), R9
	MOVQ c+24(FP), R10
	MOVQ R8, (DI)
	MOVQ R9, 8(DI)
	MOVQ R10, 16(DI)
	RET

// func claim(p *byte, n int)
TEXT ·claim(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), DI
	MOVQ n+8(FP), CX
line:
	MOVQ (DI), AX
	MOVQ AX, (DI)
	ADDQ $64, DI
	SUBQ $64, CX
	JGT  line
	RET

// func claimAhead(p *byte, n int)
TEXT ·claimAhead(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), DI
	MOVQ n+8(FP), CX
line:
	BYTE $0x0f; BYTE $0x0d; BYTE $0x0f // PREFETCHW (DI)
	ADDQ $64, DI
	SUBQ $64, CX
	JGT  line
	RET

// func copyNonTemporal(dst, src *byte, n int)
TEXT ·copyNonTemporal(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
line:
	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	MOVNTO X0, (DI)
	MOVNTO X1, 16(DI)
	MOVNTO X2, 32(DI)
	MOVNTO X3, 48(DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $64, CX
	JGT  line
	SFENCE
	RET

// func copyString(dst, src *byte, n int)
TEXT ·copyString(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	REP; MOVSB
	RET

// func fastStrings() bool
TEXT ·fastStrings(SB), NOSPLIT, $0-1
	MOVB  $0, ret+0(FP)
	XORL  AX, AX
	CPUID
	CMPL  AX, $7
	JLT   none
	MOVL  $7, AX
	XORL  CX, CX
	CPUID
	BTL   $4, DX // fast short REP MOV
	JCC   none
	MOVB  $1, ret+0(FP)
none:
	RET
