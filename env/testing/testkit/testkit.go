// Package testkit has what tests of many packages need: reserved ports, pipes, logs that can be read, a full disk, settings of their own.
package testkit
