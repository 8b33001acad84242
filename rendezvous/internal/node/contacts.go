package node

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// maxJobs is how many jobs are named where the one that somebody asks for is not.
const maxJobs = 20

// Contacts returns the agents that a job has now. It needs RunID, and how to reach the store. The error is a
// *rendezvous.NoJobError if there is no such job.
func Contacts(ctx context.Context, c Config) (found rendezvous.Contacts, err error) {
	c.Prefix = cmp.Or(c.Prefix, DefaultPrefix)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	k := keysOf(c.Prefix, c.RunID)
	answer, err := c.Store.Read(ctx, one(k.config()), store.Query{Range: store.Below(k.nodes()), Limit: nodesLimit})
	if err != nil {
		return found, err
	}
	config, nodes := answer.Found[0].Only(), answer.Found[1].KVs
	if config.Written == 0 || len(nodes) == 0 {
		jobs, err := jobs(ctx, c.Store, c.Prefix)
		return found, errors.Join(&rendezvous.NoJobError{RunID: c.RunID, Jobs: jobs}, err)
	}
	doc, err := decode[configDoc](config)
	if err != nil {
		return found, err
	}
	found.Secret = []byte(doc.Secret)
	for _, kv := range nodes {
		n, err := decode[nodeDoc](kv)
		if err != nil {
			return found, err
		}
		found.Agents = append(found.Agents, rendezvous.Contact{
			Key: strings.TrimPrefix(kv.Key, k.nodes()), Node: n.Node, Addr: address(n.Node.Reach(), n.AgentPort),
		})
	}
	slices.SortFunc(found.Agents, func(a, b rendezvous.Contact) int { return cmp.Compare(a.Node.ID, b.Node.ID) })
	return found, nil
}

// jobs returns the names of jobs that run.
func jobs(ctx context.Context, s store.Store, prefix string) (names []string, err error) {
	answer, err := s.Read(ctx, store.Query{Range: store.Below(prefix), Limit: 10 * nodesLimit, OnlyKeys: true})
	if err != nil {
		return nil, err
	}
	for _, kv := range answer.Found[0].KVs {
		name, isJob := strings.CutSuffix(strings.TrimPrefix(kv.Key, prefix), "/job/config")
		if name, err := url.PathUnescape(name); isJob && err == nil && len(names) < maxJobs {
			names = append(names, name)
		}
	}
	return names, nil
}
