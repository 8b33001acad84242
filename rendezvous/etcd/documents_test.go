package etcd

import (
	"compress/gzip"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/gorun/gorun/rendezvous"
)

// TestRoundDocument: what is written of a round can be read again, however many nodes there are and whatever they have in
// common.
func TestRoundDocument(t *testing.T) {
	for _, n := range []int{1, 2, 100, nodesLimit} {
		want := &rendezvous.Formed{ID: 2, Restarts: 1, Why: "b is lost"}
		for i := range n {
			host := fmt.Sprintf("node-%d.a-cluster-with-a-long-name.example.com", i)
			want.Members = append(want.Members, rendezvous.Candidate{
				Key: fmt.Sprintf("%016x", i), Try: 1 + i/3,
				Node: rendezvous.Node{ID: host + "/1", Host: host, Addr: fmt.Sprintf("10.0.%d.%d", i/256, i%256), NodeRank: i%2 - 1, Nproc: 1 + i%5, Role: []string{"", "default"}[i/50%2]},
			})
		}
		want.Members[0].Port = 4000
		text, err := encode("rounds/2", roundOf(want, "secret"))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := decode[roundDoc](&mvccpb.KeyValue{Value: []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		if got := doc.formed(); !reflect.DeepEqual(got, want) || doc.Token != "secret" {
			t.Errorf("%d nodes: %+v, want %+v", n, got, want)
		}
		for i, m := range want.Members {
			if rank := doc.rank(m.Key); rank != i || doc.Tries.at(i) != m.Try {
				t.Fatalf("%s has rank %d and try %d, want %d and %d", m.Key, rank, doc.Tries.at(i), i, m.Try)
			}
		}
		if doc.rank("stranger") >= 0 {
			t.Error("a stranger is a member")
		}
		if perNode := len(text) / n; n >= 100 && perNode > 40 {
			t.Errorf("%d nodes: %d bytes for each", n, perNode)
		}
	}
}

func TestBadDocuments(t *testing.T) {
	long := strings.Repeat("x", docLimit)
	for _, c := range []struct{ text, want string }{
		{`nonsense`, "not a document of gorun's: invalid character 'o' in literal null (expecting 'u')"},
		{`{"version":2,"is":[]}`, "version 2, and this gorun knows version 1: all nodes need the same gorun"},
		{`{"version":1,"is":{"keys":7}}`, "not a document of gorun's: json: cannot unmarshal number into Go struct field roundDoc.is.keys of type etcd.lines"},
		{`{"version":1}`, "round 0 with port 0"},
		{`{"version":1,"is":{"id":1,"port":1,"keys":"a\nb"}}`, "round 1 with 2 nodes, and something of more or fewer"},
		{`{"version":1,"is":` + round(1, 2) + `}`, "round 1 with 1 nodes, and something of more or fewer"},
		{`{"version":1,"is":` + round(1, -1) + `}`, "round 1 with 1 nodes, and something of more or fewer"},
		{`{"version":1,"is":` + round(0, 1) + `}`, "round 1 with a node that has no workers"},
		{`{"version":1,"is":{"token":"` + long + `"}}`, "a document of more than 1048576 bytes"},
		{"\x1f\x8b", "not a document of gorun's: unexpected EOF"},
		{packed(t, long+"{}"), "a document of more than 1048576 bytes"},
	} {
		_, err := decode[roundDoc](&mvccpb.KeyValue{Key: []byte("rounds/1"), Value: []byte(c.text)})
		var bad *DocumentError
		if !errors.As(err, &bad) || bad.Key != "rounds/1" || bad.Err.Error() != c.want {
			t.Errorf("%.60s: %v, want %s", c.text, err, c.want)
		}
	}
	if _, err := encode("k", long); err == nil {
		t.Error("a document is written that nobody would read")
	}
	huge := &rendezvous.Failure{Text: strings.Repeat("x", failureLimit)}
	if err := checkFailure(huge); err == nil {
		t.Error("a failure of more than 64 KiB is reported")
	}
}

// round has one node, with so many workers, and so many tries.
func round(nproc, tries int) string {
	return fmt.Sprintf(`{"id":1,"port":1,"keys":"k","ids":"","hosts":"h","roles":[{"is":"","times":1}],"node_ranks":[{"is":-1,"times":1}],`+
		`"nprocs":[{"is":%d,"times":1}],"tries":[{"is":1,"times":%d}],"token":"t"}`, nproc, tries)
}

// packed is a document that a stranger may have packed.
func packed(t testing.TB, text string) string {
	t.Helper()
	var b strings.Builder
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version":1,"is":` + round(1, 1) + `}`))
	f.Add([]byte(packed(f, `{"version":1,"is":`+round(1, 1)+`}`)))
	f.Add([]byte(`{"version":1,"is":{"failure":{"code":3},"outcome":{"code":1},"round":4,"over":{"why":"w"}}}`))
	f.Add([]byte(`{"version":9}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		kv := &mvccpb.KeyValue{Key: []byte("k"), Value: text}
		if doc, err := decode[roundDoc](kv); err == nil {
			members := doc.formed().Members
			if len(members) == 0 || doc.rank(members[0].Key) != 0 {
				t.Errorf("%q is a round of %+v", text, members)
			}
		}
		_, _ = decode[nodeDoc](kv)
		_, _ = decode[reportDoc](kv)
		_, _ = decode[stateDoc](kv)
		if doc, err := decode[currentDoc](kv); err == nil && doc.Round < 1 {
			t.Errorf("%q is round %d", text, doc.Round)
		}
	})
}
