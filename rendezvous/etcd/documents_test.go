package etcd

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/gorun/gorun/rendezvous"
)

func TestDocuments(t *testing.T) {
	here := nodeDoc{Node: node{ID: "a/1", Host: "a", NodeRank: -1, Nproc: 2, Role: "default"}, Port: 4000, Joining: true, Try: 3}
	doc := roundDoc{ID: 2, Members: []member{{Key: "k", Since: 7, nodeDoc: here}}, Token: "secret", Restarts: 1, Why: "b is lost"}
	text, err := encode("rounds/2", doc)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode[roundDoc](&mvccpb.KeyValue{Value: []byte(text)})
	if err != nil || !reflect.DeepEqual(got, doc) {
		t.Errorf("%+v, %v; want %+v", got, err, doc)
	}
	if c := got.Members[0].candidate(); memberOf(c).nodeDoc != here || c.Node != rendezvous.Node(here.Node) {
		t.Errorf("the node is %+v", c)
	}
}

func TestBadDocuments(t *testing.T) {
	long := strings.Repeat("x", docLimit)
	for _, c := range []struct{ text, want string }{
		{`nonsense`, "not a document of gorun's: invalid character 'o' in literal null (expecting 'u')"},
		{`{"version":2,"is":[]}`, "version 2, and this gorun knows version 1: all nodes need the same gorun"},
		{`{"version":1,"is":{"members":7}}`, "not a document of gorun's: json: cannot unmarshal number into Go struct field roundDoc.is.members of type []etcd.member"},
		{`{"version":1}`, "round 0 with 0 nodes"},
		{`{"version":1,"is":{"id":1,"members":[{"key":"k","port":1}]}}`, `host "", 0 workers, port 1`},
		{`{"version":1,"is":{"id":1,"members":[{"key":"k","port":1,"node":{"host":"h","nproc":1}},{"key":"k","port":1,"node":{"host":"h","nproc":1}}]}}`,
			"node k is in round 1 twice"},
		{`{"version":1,"is":{"token":"` + long + `"}}`, "a document of 1048607 bytes: want at most 1048576"},
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

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version":1,"is":{"id":1,"members":[{"key":"k","since":1,"port":1,"node":{"host":"h","nproc":1}}],"token":"t"}}`))
	f.Add([]byte(`{"version":1,"is":{"failure":{"code":3},"outcome":{"code":1},"round":4,"over":{"why":"w"}}}`))
	f.Add([]byte(`{"version":9}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		kv := &mvccpb.KeyValue{Key: []byte("k"), Value: text}
		if doc, err := decode[roundDoc](kv); err == nil {
			if n := len(doc.formed().Members); n == 0 || doc.rank(doc.Members[n-1].Key) != n-1 {
				t.Errorf("%q is a round of %d", text, n)
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
