package main

import (
	"os"
	_ "github.com/gorun/gorun/rendezvous/etcd"
)

func main() { os.Exit(0) }
