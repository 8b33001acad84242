package etcd

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

// maxJobs is how many jobs are named where the one that somebody asks for is not.
const maxJobs = 20

// Contacts returns the agents that a job has now. It needs RunID, and how to reach etcd. The error is a *rendezvous.NoJobError if there is no
// such job.
func Contacts(ctx context.Context, c Config) (found rendezvous.Contacts, err error) {
	c.Prefix = cmp.Or(c.Prefix, DefaultPrefix)
	client, err := connect(&c)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, closeClient(client)) }()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return contacts(ctx, client, c.Prefix, c.RunID)
}

func contacts(ctx context.Context, client clientv3.KV, prefix, runID string) (found rendezvous.Contacts, err error) {
	k := keysOf(prefix, runID)
	answer, err := client.Txn(ctx).Then(
		clientv3.OpGet(k.config()),
		clientv3.OpGet(k.nodes(), clientv3.WithPrefix(), clientv3.WithLimit(nodesLimit)),
	).Commit()
	if err != nil {
		return found, err
	}
	config, nodes := onlyKey(answer.Responses[0]), answer.Responses[1].GetResponseRange().Kvs
	if config == nil || len(nodes) == 0 {
		jobs, err := jobs(ctx, client, prefix)
		return found, errors.Join(&rendezvous.NoJobError{RunID: runID, Jobs: jobs}, err)
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
			Key: strings.TrimPrefix(string(kv.Key), k.nodes()), Node: n.Node, Addr: address(n.Node.Reach(), n.AgentPort),
		})
	}
	slices.SortFunc(found.Agents, func(a, b rendezvous.Contact) int { return cmp.Compare(a.Node.ID, b.Node.ID) })
	return found, nil
}

// jobs returns the names of jobs that run.
func jobs(ctx context.Context, client clientv3.KV, prefix string) (names []string, err error) {
	answer, err := client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(10*nodesLimit))
	if err != nil {
		return nil, err
	}
	for _, kv := range answer.Kvs {
		name, isJob := strings.CutSuffix(strings.TrimPrefix(string(kv.Key), prefix), "/job/config")
		if name, err := url.PathUnescape(name); isJob && err == nil && len(names) < maxJobs {
			names = append(names, name)
		}
	}
	return names, nil
}
