package rendezvous_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/rendezvous"
)

func ExampleAssign() {
	for i, p := range rendezvous.Assign([]rendezvous.Node{
		{Role: "master", Nproc: 1}, {Role: "trainer", Nproc: 4}, {Role: "master", Nproc: 2},
	}) {
		fmt.Printf("node %d: ranks from %d of %d, role ranks from %d of %d\n",
			i, p.FirstRank, p.WorldSize, p.FirstRoleRank, p.RoleWorldSize)
	}
	// Output:
	// node 0: ranks from 0 of 7, role ranks from 0 of 3
	// node 1: ranks from 1 of 7, role ranks from 0 of 4
	// node 2: ranks from 5 of 7, role ranks from 1 of 3
}

// TestAssignTorch holds the assignments of torchelastic's own tests.
func TestAssignTorch(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes []rendezvous.Node
		world int
		roles map[string]int
	}{
		{"heterogeneous", nodesOf("master", 8, "trainer", 1, "trainer", 2, "trainer", 3, "trainer", 4, "ps", 5, "ps", 2),
			25, map[string]int{"master": 8, "trainer": 10, "ps": 7}},
		{"homogeneous", nodesOf("master", 1, "trainer", 4, "trainer", 4, "trainer", 4, "ps", 3, "ps", 3),
			19, map[string]int{"master": 1, "trainer": 12, "ps": 6}},
		{"one node", nodesOf("default", 4), 4, map[string]int{"default": 4}},
		{"nobody", nil, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) { checkPlaces(t, c.nodes, c.world, c.roles) })
	}
}

func nodesOf(roleAndNproc ...any) (nodes []rendezvous.Node) {
	for i := 0; i < len(roleAndNproc); i += 2 {
		nodes = append(nodes, rendezvous.Node{Role: roleAndNproc[i].(string), Nproc: roleAndNproc[i+1].(int)})
	}
	return nodes
}

func TestAssignProperties(t *testing.T) {
	node := rapid.Custom(func(t *rapid.T) rendezvous.Node {
		return rendezvous.Node{
			Role:  rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "role"),
			Nproc: rapid.IntRange(1, 9).Draw(t, "nproc"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfN(node, 1, 12).Draw(t, "nodes")
		world, roles := 0, make(map[string]int)
		for _, n := range nodes {
			world += n.Nproc
			roles[n.Role] += n.Nproc
		}
		checkPlaces(t, nodes, world, roles)
	})
}

// checkPlaces wants RANK to be a permutation in node order, and ROLE_RANK to count through every role without a
// gap, in the same order.
func checkPlaces(t rapid.TB, nodes []rendezvous.Node, world int, roles map[string]int) {
	t.Helper()
	places := rendezvous.Assign(nodes)
	if len(places) != len(nodes) {
		t.Fatalf("%d places for %d nodes", len(places), len(nodes))
	}
	rank, roleRank := 0, make(map[string]int)
	for i, p := range places {
		role := nodes[i].Role
		want := rendezvous.Place{
			FirstRank: rank, WorldSize: world,
			FirstRoleRank: roleRank[role], RoleWorldSize: roles[role],
		}
		if p != want {
			t.Fatalf("node %d of %+v: %+v, want %+v", i, nodes, p, want)
		}
		rank += nodes[i].Nproc
		roleRank[role] += nodes[i].Nproc
	}
	if rank != world {
		t.Fatalf("%d ranks in a world of %d", rank, world)
	}
}
