package drill

import "testing"

// TestProgram: what is known of workers that report nothing but that they have started.
func TestProgram(t *testing.T) {
	w := newTale(2)
	w.replace = true
	var all []*worker
	for i := range 4 {
		k := &worker{place: place{Node: i / 2, Local: i % 2, Pid: 100 + i, Round: 1, Rank: i, World: 4, Master: "m"}}
		all = append(all, k)
		w.tell(k, started)
	}
	nodes := []int{0, 1}
	w.wrote(w.now.Add(linePause / 2))
	if w.together(nodes) {
		t.Error("a line counts that may come from the round before")
	}
	w.wrote(w.now.Add(linePause))
	if !w.together(nodes) {
		t.Errorf("a line does not count: %s", w.describe())
	}
	w.inject(w.now, fault{hits: func(k *worker) bool { return k == all[3] }})
	w.die(all[3])
	w.joined(w.now, 0, joining{2, 2, 0})
	w.joined(w.now, 1, joining{2, 2, 1})
	w.joined(w.now, 1, joining{2, 2, 1}) // as if it had been read twice
	if list := w.live(0); len(list) != 2 || list[0].Round != 2 {
		t.Errorf("on node 0 live %v", list)
	}
	w.wrote(w.now.Add(linePause))
	if w.together(nodes) {
		t.Error("they are together without the one that has died")
	}
	w.tell(&worker{place: place{Node: 1, Local: 1, Pid: 104, Round: 2, Rank: 3, World: 4, Restarts: 1, Master: "m2"}}, started)
	w.wrote(w.now.Add(linePause))
	if !w.together(nodes) || w.wrong != nil || w.checkRound() != nil {
		t.Errorf("they are not together: %s, %v, %v", w.describe(), w.wrong, w.checkRound())
	}
	if others, on := w.livedOn(); others != 3 || on != 3 || w.restarts() != 1 {
		t.Errorf("%d of %d have lived on, with %d restarts", on, others, w.restarts())
	}
	w.die(all[:2]...) // whose connections know them from the first round
	if list := w.live(0); list != nil {
		t.Errorf("on node 0 still live %v", list)
	}
}
