package rendezvous

// A Place is a node's place in a round: its workers have the ranks FirstRank to FirstRank+Nproc-1 in the
// world, and FirstRoleRank to FirstRoleRank+Nproc-1 among the workers of its role.
type Place struct {
	FirstRank     int `json:"first"`
	WorldSize     int `json:"world"`
	FirstRoleRank int `json:"role_first"`
	RoleWorldSize int `json:"role_world"`
}

// Assign numbers the workers of nodes, which must be in rank order, and returns a place for each node. Ranks
// count through all nodes; role ranks count through the nodes of one role, in the same order. Nodes may differ
// in Nproc and Role.
func Assign(nodes []Node) []Place {
	places := make([]Place, len(nodes))
	world := 0
	roles := make(map[string]int)
	for i, n := range nodes {
		places[i].FirstRank = world
		places[i].FirstRoleRank = roles[n.Role]
		world += n.Nproc
		roles[n.Role] += n.Nproc
	}
	for i, n := range nodes {
		places[i].WorldSize = world
		places[i].RoleWorldSize = roles[n.Role]
	}
	return places
}
