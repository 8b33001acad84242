package drill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// mostKeys is how many keys a job may leave in etcd. It needs one, to say that it is over, and those of lost nodes last until their leases end.
const mostKeys = 16

// fewKeys checks that the job has left few keys in etcd. A member that ended before the others, or was cut off, may not know of the end.
func fewKeys() step {
	return step{fmt.Sprintf("the job has left at most %d keys in etcd", mostKeys), func(_ context.Context, d *drill) error {
		least := math.MaxInt
		for member := range d.etcds {
			n, err := countKeys(d.dataDir(member))
			if err != nil {
				return err
			}
			least = min(least, n)
		}
		if least > mostKeys {
			return fmt.Errorf("it has left %d", least)
		}
		return nil
	}}
}

// countKeys returns how many keys a member of etcd has, which has ended.
func countKeys(dataDir string) (n int, err error) {
	name := filepath.Join(dataDir, "member", "snap", "db")
	if _, err := os.Stat(name); err != nil {
		return 0, err
	}
	db, err := bbolt.Open(name, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	live := make(map[string]bool)
	err = db.View(func(tx *bbolt.Tx) error {
		revisions := tx.Bucket([]byte("key"))
		if revisions == nil {
			return fmt.Errorf("%s has no bucket of keys", name)
		}
		return revisions.ForEach(func(revision, value []byte) error {
			key, err := keyIn(value)
			if err != nil {
				return err
			}
			if isDeletion := len(revision) == deletionSize && revision[deletionSize-1] == 't'; isDeletion {
				delete(live, key)
			} else {
				live[key] = true
			}
			return nil
		})
	})
	return len(live), err
}

// deletionSize is the length of a revision, two numbers with a separator, with a mark that it has deleted the key.
const deletionSize = 8 + 1 + 8 + 1

// keyIn returns the key in etcd's record of a revision, a message of protocol buffers whose first field it is.
func keyIn(record []byte) (string, error) {
	const field = 1<<3 | 2 // number 1, bytes
	if len(record) < 2 || record[0] != field || record[1] >= 0x80 || len(record) < 2+int(record[1]) {
		return "", fmt.Errorf("a record of etcd cannot be read: %x", bytes.Clone(record[:min(len(record), 16)]))
	}
	return string(record[2 : 2+int(record[1])]), nil
}
