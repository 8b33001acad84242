package etcdstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// chunkSize is the longest value that is stored in one key: etcd takes requests of 1.5 MiB.
const chunkSize = 1 << 20

// The first byte of a record's text says what the rest is.
const (
	inOne    = 'v' // the value
	inChunks = 'c' // the number of chunks and their prefix: "16 <prefix>"
)

// errReplaced says that another client has replaced a record while its chunks were read.
var errReplaced = errors.New("the value has been replaced")

// A record is what etcd has under a key.
type record struct {
	text     []byte // nil: nothing
	revision int64  // of the last change; 0: there is no such key
	asOf     int64  // the revision of etcd at which it was read
}

func (r *record) exists() bool { return r.revision > 0 }

// read reads the record of key.
func (s *etcdStore) read(ctx context.Context, key string) (*record, error) {
	answer, err := s.client.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	r := &record{asOf: answer.Header.Revision}
	for _, kv := range answer.Kvs {
		r.text, r.revision = kv.Value, kv.ModRevision
	}
	return r, nil
}

// pieces returns the prefix and the number of the chunks of a record with that text. The number is 0 if the value is in the
// record itself, or if the chunks are not below root: whatever a record says, the store reads and deletes nothing else.
func pieces(text []byte, root string) (prefix string, n int) {
	if len(text) == 0 || text[0] != inChunks {
		return "", 0
	}
	count, prefix, _ := strings.Cut(string(text[1:]), " ")
	name, below := strings.CutPrefix(prefix, root)
	if n, _ = strconv.Atoi(count); n < 1 || !below || len(name) < 2 || strings.Index(name, "/") != len(name)-1 {
		return "", 0
	}
	return prefix, n
}

// deletion returns the operations that delete r's chunks.
func (s *etcdStore) deletion(r *record) []clientv3.Op {
	if prefix, n := pieces(r.text, s.chunks); n > 0 {
		return []clientv3.Op{clientv3.OpDelete(prefix, clientv3.WithPrefix())}
	}
	return nil
}

// discard deletes r's chunks.
func (s *etcdStore) discard(ctx context.Context, r *record) error {
	for _, op := range s.deletion(r) {
		if _, err := s.client.Do(ctx, op); err != nil {
			return err
		}
	}
	return nil
}

// value returns the value of r. It is nil if the key does not exist.
func (s *etcdStore) value(ctx context.Context, r *record) ([]byte, error) {
	prefix, n := pieces(r.text, s.chunks)
	switch {
	case !r.exists():
		return nil, nil
	case n == 0 && (len(r.text) == 0 || r.text[0] != inOne):
		return nil, errors.New("what is under this key is not a store's")
	case n == 0:
		return r.text[1:], nil
	}
	var value []byte
	for i := range n {
		answer, err := s.client.Get(ctx, chunkKey(prefix, i))
		if err != nil {
			return nil, err
		}
		if len(answer.Kvs) == 0 {
			return nil, errReplaced
		}
		value = append(value, answer.Kvs[0].Value...)
	}
	return value, nil
}

// upload returns a record of value. It first writes the chunks of a long value.
func (s *etcdStore) upload(ctx context.Context, value []byte) (*record, error) {
	if len(value) <= chunkSize {
		return &record{text: append([]byte{inOne}, value...)}, nil
	}
	prefix := s.chunks + rand.Text() + "/"
	n := 0
	for ; len(value) > 0; n++ {
		piece := value[:min(len(value), chunkSize)]
		value = value[len(piece):]
		if _, err := s.client.Put(ctx, chunkKey(prefix, n), string(piece)); err != nil {
			return nil, err
		}
	}
	return &record{text: fmt.Appendf(nil, "%c%d %s", inChunks, n, prefix)}, nil
}

func chunkKey(prefix string, i int) string { return prefix + strconv.Itoa(i) }
