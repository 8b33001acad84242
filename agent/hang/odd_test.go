package hang

import "testing"

// TestOddOneOut: a worker is named only if it is the only one that does not wait, or the others are all at one place.
func TestOddOneOut(t *testing.T) {
	const nobody = -1
	backward, load, save := "backward (torch.py:7) < <module> (train.py:9)", "next (loader.py:3) < <module> (train.py:8)", "save (train.py:20)"
	at := func(stack string) place { return place{stack: stack} }
	in := func(stack string) place { return place{stack: stack, waiting: true} }
	for _, c := range []struct {
		name    string
		places  []place
		want    int
		certain bool
	}{
		{"none", nil, nobody, false},
		{"one", []place{{does: idles}}, nobody, false},
		{"two: one sleeps, the other waits", []place{{does: waits}, {does: idles}}, 1, true},
		{"two: one sleeps, the other spins", []place{{does: idles}, {does: runs}}, 0, true},
		{"two: one loops, or the other does and waits", []place{{does: waits}, {does: runs}}, nobody, false},
		{"two at different places, and both wait", []place{at(backward), at(load)}, nobody, false},
		{"both sleep", []place{{does: idles}, {does: idles}}, nobody, false},
		{"all wait", []place{{}, {}, {}, {}}, nobody, false},
		{"one loops, and the others wait", []place{{}, {does: runs}, {}}, 1, false},
		{"one waits for data, and the others spin", []place{{does: runs}, {does: runs}, {}}, 2, false},
		{"two sleep", []place{{}, {does: idles}, {does: idles}}, nobody, false},
		{"one of many sleeps, whatever the others do", []place{{}, {does: runs}, at(load), {stack: backward, does: idles}}, 3, true},
		{"one is elsewhere", []place{at(backward), at(load), at(backward), at(backward)}, 1, false},
		{"all are at one place", []place{at(backward), at(backward), at(backward)}, nobody, false},
		{"all are elsewhere", []place{at(backward), at(load), at(save)}, nobody, false},
		{"two and two", []place{at(backward), at(load), at(load), at(backward)}, nobody, false},
		{"all sleep, one of them elsewhere", []place{{stack: save, does: idles}, {stack: load, does: idles}, {stack: load, does: idles}}, 0, false},
		{"two: one waits in backward, the other for a lock", []place{in(backward), at(load)}, 1, true},
		{"all but one wait, at several places", []place{in(backward), in(save), at(load)}, 2, true},
		{"one that waits runs", []place{{stack: backward, waiting: true, does: runs}, at(load)}, nobody, false},
		{"two wait for locks", []place{in(backward), at(load), at(save)}, nobody, false},
		{"all wait", []place{in(backward), in(backward)}, nobody, false},
		{"one waits in backward, and where the other is, is not known", []place{in(backward), at("")}, nobody, false},
		{"a stack is not known", []place{at(backward), at(backward), at("")}, nobody, false},
	} {
		if got, certain := oddOneOut(c.places); got != c.want || certain != c.certain {
			t.Errorf("%s: %d, %t, want %d, %t", c.name, got, certain, c.want, c.certain)
		}
	}
}
