package drill

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// TestCountKeys: a key that has been written twice counts once, and one that has been deleted does not, unless it has been written since.
func TestCountKeys(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(filepath.Join(dir, "member", "snap", "db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	revision := uint64(0)
	write := func(key string, isDeletion bool) {
		revision++
		id := binary.BigEndian.AppendUint64(nil, revision)
		id = append(append(id, '_'), make([]byte, 8)...)
		if isDeletion {
			id = append(id, 't')
		}
		record := append([]byte{1<<3 | 2, byte(len(key))}, key...)
		err := db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("key"))
			if err != nil {
				return err
			}
			return b.Put(id, append(record, 0x10, 1))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"a", "b", "a", "c", "d"} {
		write(key, false)
	}
	write("b", true)
	write("c", true)
	write("c", false)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := countKeys(dir); n != 3 || err != nil {
		t.Errorf("%d keys, want 3: %v", n, err)
	}
	if _, err := countKeys(t.TempDir()); err == nil {
		t.Error("a directory without data has keys")
	}
	for _, bad := range [][]byte{nil, {1<<3 | 2}, {1<<3 | 2, 5, 'a'}, {2<<3 | 2, 1, 'a'}, {1<<3 | 2, 0x80, 1}} {
		if key, err := keyIn(bad); err == nil {
			t.Errorf("%x has key %q", bad, key)
		}
	}
}
