package comm

import (
	"context"
	"log/slog"
	"net"

	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/comm/store/filestore"
	"github.com/gorun/gorun/comm/store/memstore"
	"github.com/gorun/gorun/comm/store/tcpstore"
)

// The stores are packages below comm/store, so that a program that only needs a store does not link the collectives. Here
// they have the names that torch.distributed gives them.

const (
	// MaxStoreKey is the longest key of a [Store], in bytes. The shortest has one byte.
	MaxStoreKey = store.MaxKey
	// MaxStoreValue is the longest value of a [Store], in bytes. A value may be empty.
	MaxStoreValue = store.MaxValue
)

// ErrStoreClosed is what every call on a closed [Store] returns. Calls that were waiting when it was closed return it too.
var ErrStoreClosed = store.ErrClosed

// A Store is the small key-value space in which ranks find each other. [NewMemStore], [NewFileStore] and [NewTCPStore] open
// one; [NewPrefixStore] is a view of another. A store of your own is tested by package comm/store/storetest.
//
//	Set(ctx, key, value) error                   stores value under key and replaces what was there
//	Get(ctx, key) ([]byte, error)                waits until key exists and returns its value
//	Add(ctx, key, n) (int64, error)              adds n to the number under key and returns the sum
//	CompareAndSwap(ctx, key, old, new) ([]byte, error)
//	                                             stores new if key holds old; returns what key holds afterwards
//	Wait(ctx, keys...) error                     waits until it has seen every key
//	Delete(ctx, key) (bool, error)               removes key and reports whether it existed
//	Close() error                                ends this handle
//
// A key has 1 to [MaxStoreKey] bytes, a value 0 to [MaxStoreValue]. Both may be any bytes. Values are copied in and out.
// Many goroutines may call all methods at once. Operations on one key happen one after the other, in the same order for
// everybody.
//
// A call whose ctx has already ended does nothing. A call whose ctx ends while it runs returns an error that wraps
// ctx.Err(); it may or may not have happened. That of Get and Wait is a [*MissingKeysError]. After Close, pending and later
// calls return [ErrStoreClosed]. [store.Store] documents each method.
type Store = store.Store

// A MissingKeysError says which keys had not been seen when a Get or Wait of a [Store] ended: Keys, in the order of the call's arguments.
// Err, which it wraps, is the error of the context.
type MissingKeysError = store.MissingKeysError

// A MemStore is a [Store] in the memory of this process, for ranks that are goroutines.
type MemStore = memstore.Store

// NewMemStore returns an empty store. Those that share it also share its Close.
func NewMemStore() *MemStore { return memstore.New() }

// NewPrefixStore returns a view of s that puts prefix before every key, without a separator. A [MissingKeysError] names keys
// without the prefix. Prefix and key together may have [MaxStoreKey] bytes. Closing the view ends the calls made through it
// and leaves s open.
func NewPrefixStore(s Store, prefix string) Store { return store.NewPrefix(s, prefix) }

// A FileStore is one handle of a [Store] in a directory that processes share, on one machine or on a file system with locks
// between machines. The store lives as long as a handle is open: the first one to open it finds it empty, whatever an
// earlier run has left there, and the last one to close it removes the directory. A process may be killed at any moment
// without harm to the others.
type FileStore = filestore.Store

// NewFileStore opens the store at path. It makes the directory, but not the one above it. It is an error if there is a file or a symbolic link, a
// directory of another user, one that others can write to, or one with other files. Then they stay as they are.
func NewFileStore(path string) (*FileStore, error) { return filestore.Open(path) }

// A TCPStore is a [Store] that a [StoreServer] keeps, reached over one TCP connection. Calls do not hold each other up. When
// the connection breaks, pending and later calls fail with an error that names the address. A TCPStore does not connect
// again.
type TCPStore = tcpstore.Client

// NewTCPStore connects to the server at addr, host:port, and proves to it that it has the same token. While there is no
// answer it tries again until ctx ends: rank 0 may not have started its server yet. A server with another token, or one that
// is not a store, is an error at once. Without a token the server is on loopback, and of this user: see [ListenStore].
func NewTCPStore(ctx context.Context, addr string, token []byte) (*TCPStore, error) {
	return tcpstore.Dial(ctx, addr, tcpstore.Config{Token: token})
}

// A StoreServer keeps a store in memory for the [TCPStore] clients that have its token. The server disconnects a client that
// does not read its replies, and one that does not have the token or sends a malformed request. None of them holds up the
// others.
type StoreServer = tcpstore.Server

// ListenStore starts a server on addr, host:port. Port 0 stands for a free port. Without a token it serves programs of this
// user on this machine only, which have a token of their own (see "A token" in docs/comm.md). Without a token, or with one
// that can be guessed, it refuses an addr that other machines can reach. A nil log discards.
func ListenStore(addr string, token []byte, log *slog.Logger) (*StoreServer, error) {
	return tcpstore.Listen(addr, tcpstore.Config{Token: token, Log: log})
}

// ServeStore starts a server on l, which its Close closes. Without a token it turns away every connection but those of
// programs of this user on this machine, which have a token of their own. If there is no place for that one, it says so in
// the log and turns away all. A nil log discards.
func ServeStore(l net.Listener, token []byte, log *slog.Logger) *StoreServer {
	return tcpstore.Serve(l, tcpstore.Config{Token: token, Log: log})
}
