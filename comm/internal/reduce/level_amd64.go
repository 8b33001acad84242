package reduce

import "golang.org/x/sys/cpu"

// longest is the most bytes of a vector that one call of assembly works on, because the goroutine cannot be preempted
// meanwhile.
const longest = 256 << 10

// assembly has the functions of a level. They are nil where portable Go is as fast. They take multiples of so many
// bytes or floats.
type assembly struct {
	bytes, floats    int // powers of 2
	combine          [numTypes][numOps]func(dst, a, b *byte, n int)
	accumulate       [numTypes][numOps]func(acc *float32, src *byte, n int)
	widen            [numTypes]func(dst *float32, src *byte, n int)
	narrow           [numTypes]func(dst *byte, src *float32, n int)
	multiply, divide [numTypes]func(v *byte, n int, by float64)
}

// levels returns the names of the levels that this machine has, the best one last. x/sys/cpu reports a feature only if
// the system saves its registers as well.
func levels() []string {
	names := []string{"portable"}
	if x := cpu.X86; x.HasAVX2 && x.HasF16C {
		names = append(names, "avx2")
		if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasBMI2 {
			names = append(names, "avx512")
		}
	}
	return names
}

func newLevel(name string) *level {
	l := portable()
	l.name = name
	switch name {
	case "avx2":
		codeAVX2.speedUp(l)
	case "avx512":
		codeAVX512.speedUp(l)
	}
	return l
}

// speedUp makes the functions of s those of l. For what is left over at the end of a vector they call the former
// functions of l.
func (s *assembly) speedUp(l *level) {
	for t := range numTypes {
		for o := range numOps {
			if f := s.combine[t][o]; f != nil {
				l.combine[t][o] = s.combining(f, l.combine[t][o])
			}
			if f := s.accumulate[t][o]; f != nil {
				l.accumulate[t][o] = s.fromHalves(f, l.accumulate[t][o])
			}
		}
		if f := s.widen[t]; f != nil {
			l.widen[t] = s.fromHalves(f, l.widen[t])
		}
		if f := s.narrow[t]; f != nil {
			l.narrow[t] = s.toHalves(f, l.narrow[t])
		}
		if f := s.multiply[t]; f != nil {
			l.multiply[t] = s.scaling(f, l.multiply[t])
		}
		if f := s.divide[t]; f != nil {
			l.divide[t] = s.scaling(f, l.divide[t])
		}
	}
}

// The following methods return a function that calls f in a loop in which the goroutine can be preempted, and rest for
// what is left over.

func (s *assembly) combining(f func(dst, a, b *byte, n int), rest Kernel) Kernel {
	step := s.bytes
	return func(dst, a, b []byte) {
		a, b = a[:len(dst)], b[:len(dst)]
		for len(dst) >= step {
			n := min(len(dst), longest) &^ (step - 1)
			f(&dst[0], &a[0], &b[0], n)
			dst, a, b = dst[n:], a[n:], b[n:]
		}
		if len(dst) > 0 {
			rest(dst, a, b)
		}
	}
}

func (s *assembly) fromHalves(f func(*float32, *byte, int), rest func([]float32, []byte)) func([]float32, []byte) {
	step := s.floats
	return func(dst []float32, src []byte) {
		src = src[:2*len(dst)]
		for len(dst) >= step {
			n := min(len(dst), longest/4) &^ (step - 1)
			f(&dst[0], &src[0], n)
			dst, src = dst[n:], src[2*n:]
		}
		if len(dst) > 0 {
			rest(dst, src)
		}
	}
}

func (s *assembly) toHalves(f func(*byte, *float32, int), rest func([]byte, []float32)) func([]byte, []float32) {
	step := s.floats
	return func(dst []byte, src []float32) {
		dst = dst[:2*len(src)]
		for len(src) >= step {
			n := min(len(src), longest/4) &^ (step - 1)
			f(&dst[0], &src[0], n)
			dst, src = dst[2*n:], src[n:]
		}
		if len(src) > 0 {
			rest(dst, src)
		}
	}
}

func (s *assembly) scaling(f func(v *byte, n int, by float64), rest func([]byte, float64)) func([]byte, float64) {
	step := s.bytes
	return func(v []byte, by float64) {
		for len(v) >= step {
			n := min(len(v), longest) &^ (step - 1)
			f(&v[0], n, by)
			v = v[n:]
		}
		if len(v) > 0 {
			rest(v, by)
		}
	}
}
