package etcd

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/gorun/gorun/rendezvous"
)

// roundDoc is what rounds/<n> says. Every node reads all of it, so it has columns, with an entry for each member in rank
// order: they are read faster than members, and take a third of the bytes.
type roundDoc struct {
	ID       int    `json:"id"`
	Token    string `json:"token"`
	Restarts int    `json:"restarts"`
	Why      string `json:"why,omitempty"`
	Port     int    `json:"port"` // of the master, on the first node
	Door     int    `json:"door"` // at which the agent there answers the others

	Flaps []rendezvous.Flap `json:"flaps,omitempty"`

	Keys      lines        `json:"keys"`
	IDs       lines        `json:"ids"`
	Hosts     lines        `json:"hosts"`
	Addrs     lines        `json:"addrs"`
	Roles     runs[string] `json:"roles"`
	NodeRanks runs[int]    `json:"node_ranks"`
	Nprocs    runs[int]    `json:"nprocs"`
	Tries     runs[int]    `json:"tries"`
}

func roundOf(f *rendezvous.Formed, token string) *roundDoc {
	d := &roundDoc{ID: f.ID, Token: token, Restarts: f.Restarts, Why: f.Why, Flaps: f.Flaps, Port: f.Members[0].Port, Door: f.Members[0].Door}
	var keys, ids, hosts, addrs []string
	for _, m := range f.Members {
		keys, ids = append(keys, m.Key), append(ids, m.Node.ID)
		hosts, addrs = append(hosts, m.Node.Host), append(addrs, m.Node.Addr)
		d.Roles.add(m.Node.Role)
		d.NodeRanks.add(m.Node.NodeRank)
		d.Nprocs.add(m.Node.Nproc)
		d.Tries.add(m.Try)
	}
	d.Keys, d.IDs, d.Hosts, d.Addrs = linesOf(keys), linesOf(ids), linesOf(hosts), linesOf(addrs)
	return d
}

func (d *roundDoc) check() error {
	n := d.Keys.len()
	switch {
	case d.ID < 1 || d.Port < 1 || d.Port > 65535:
		return fmt.Errorf("round %d with port %d", d.ID, d.Port)
	case d.IDs.len() != n || d.Hosts.len() != n || d.Addrs.len() != n,
		!d.Roles.fit(n) || !d.NodeRanks.fit(n) || !d.Nprocs.fit(n) || !d.Tries.fit(n):
		return fmt.Errorf("round %d with %d nodes, and something of more or fewer", d.ID, n)
	case slices.ContainsFunc(d.Nprocs, func(r run[int]) bool { return r.Is < 1 }):
		return fmt.Errorf("round %d with a node that has no workers", d.ID)
	}
	return nil
}

// rank is that of the member, or -1.
func (d *roundDoc) rank(key string) int {
	for rank, k := range d.Keys.all() {
		if k == key {
			return rank
		}
	}
	return -1
}

// head is the first node, its key, and where its agent answers the others. Its workers are left out.
func (d *roundDoc) head() (n rendezvous.Node, key, door string) {
	n = rendezvous.Node{ID: d.IDs.first(), Host: d.Hosts.first(), Addr: d.Addrs.first()}
	return n, d.Keys.first(), address(n.Reach(), d.Door)
}

func (d *roundDoc) nodes() []rendezvous.Node {
	nodes := make([]rendezvous.Node, d.Keys.len())
	for i, id := range d.IDs.all() {
		nodes[i].ID = id
	}
	for i, host := range d.Hosts.all() {
		nodes[i].Host = host
	}
	for i, addr := range d.Addrs.all() {
		nodes[i].Addr = addr
	}
	for i, role := range d.Roles.all() {
		nodes[i].Role = role
	}
	for i, rank := range d.NodeRanks.all() {
		nodes[i].NodeRank = rank
	}
	for i, nproc := range d.Nprocs.all() {
		nodes[i].Nproc = nproc
	}
	return nodes
}

func (d *roundDoc) formed() *rendezvous.Formed {
	f := &rendezvous.Formed{ID: d.ID, Restarts: d.Restarts, Why: d.Why, Flaps: d.Flaps}
	for _, n := range d.nodes() {
		f.Members = append(f.Members, rendezvous.Candidate{Node: n})
	}
	for i, key := range d.Keys.all() {
		f.Members[i].Key = key
	}
	for i, try := range d.Tries.all() {
		f.Members[i].Try = try
	}
	f.Members[0].Port, f.Members[0].Door = d.Port, d.Door
	return f
}

// lines are texts, each of one line.
type lines string

func linesOf(texts []string) lines { return lines(strings.Join(texts, "\n")) }

func (l lines) first() string {
	first, _, _ := strings.Cut(string(l), "\n")
	return first
}

func (l lines) len() int { return strings.Count(string(l), "\n") + 1 }

func (l lines) all() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		i := 0
		for text := range strings.SplitSeq(string(l), "\n") {
			if !yield(i, text) {
				return
			}
			i++
		}
	}
}

// runs are values of which many in a row are the same.
type runs[T comparable] []run[T]

type run[T comparable] struct {
	Is    T   `json:"is"`
	Times int `json:"times"`
}

func (r *runs[T]) add(value T) {
	if n := len(*r); n > 0 && (*r)[n-1].Is == value {
		(*r)[n-1].Times++
		return
	}
	*r = append(*r, run[T]{value, 1})
}

// fit reports whether there are n values.
func (r runs[T]) fit(n int) bool {
	for _, run := range r {
		if run.Times < 1 || run.Times > n {
			return false
		}
		n -= run.Times
	}
	return n == 0
}

func (r runs[T]) all() iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		i := 0
		for _, run := range r {
			for range run.Times {
				if !yield(i, run.Is) {
					return
				}
				i++
			}
		}
	}
}

// at is the value number i.
func (r runs[T]) at(i int) (value T) {
	for n, v := range r.all() {
		if n == i {
			return v
		}
	}
	return value
}
