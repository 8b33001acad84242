// Package clustertest gives tests the software of a cluster: hosts that are reached by ssh, Slurm, and MUNGE.
package clustertest
