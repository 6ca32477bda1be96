// Command localcluster runs three nodes of the service on this machine, on a temporary PostgreSQL, with a front that
// spreads connections over them:
//
//	go run ./internal/localcluster ./bin/castellan
//
// It prints the addresses, follows the nodes' logs and ends everything at Ctrl-C. It is for trying out a cluster, not
// for keeping data: everything is in a temporary folder.
//
// The front forwards bytes without parsing HTTP. A connection goes to the next node that accepts it.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"castellan/internal/child"
	"castellan/internal/pgtest"
	"castellan/internal/porttest"
)

const nodes = 3

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "localcluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: localcluster PROGRAM")
	}
	program := args[0]
	dir, err := os.MkdirTemp("", "castellan-cluster-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := pgtest.Start()
	if err != nil {
		return err
	}
	defer db.Stop()
	keys := filepath.Join(dir, "keys")
	if out, err := exec.Command(program, "cluster", "init", keys).CombinedOutput(); err != nil {
		return fmt.Errorf("cluster init: %w: %s", err, out)
	}
	front, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		if front, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return err
		}
	}
	defer front.Close()
	ctx, stop := context.WithCancel(ctx)
	var alive sync.WaitGroup
	defer alive.Wait()
	defer stop()
	ended := make(chan string, nodes)
	var at, gossip []string
	for i := range nodes {
		var addr [3]string
		for j := range addr {
			if addr[j], err = porttest.Find(); err != nil {
				return err
			}
		}
		cmd := exec.Command(program, "serve")
		cmd.Env = append(
			os.Environ(),
			"CASTELLAN_DEV=true",
			"CASTELLAN_DATABASE_URL="+db.DSN(),
			"CASTELLAN_HTTP_ADDR="+addr[0],
			"CASTELLAN_HTTP_PUBLIC_URL=http://"+front.Addr().String(),
			fmt.Sprint("CASTELLAN_DATA_DIR=", dir, "/node-", i+1),
			"CASTELLAN_KEYS_MASTER_FILE="+filepath.Join(dir, "master.key"),
			"CASTELLAN_CLUSTER_GOSSIP_ADDR="+addr[1],
			"CASTELLAN_CLUSTER_ACTOR_ADDR="+addr[2],
			"CASTELLAN_CLUSTER_JOIN="+strings.Join(gossip, ","),
			"CASTELLAN_CLUSTER_TLS_DIR="+keys,
			"CASTELLAN_HTTP_MAX_CONNECTIONS_PER_IP=0", // the connections of the front are those of all clients
		)
		at, gossip = append(at, addr[0]), append(gossip, addr[1])
		name := fmt.Sprint("node-", i+1)
		if err := start(ctx, cmd, name, &alive, ended); err != nil {
			return err
		}
		if err := awaitNode(ctx, addr[0]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Printf("%s  http://%s  pid %d  actors %s\n", name, addr[0], cmd.Process.Pid, addr[2])
	}
	logins, err := os.ReadFile(filepath.Join(dir, "node-1", "dev-login.txt"))
	if err != nil {
		return err
	}
	fmt.Printf(
		"\nfront   http://%s\nstatus  CASTELLAN_CLUSTER_ACTOR_ADDR=… CASTELLAN_CLUSTER_TLS_DIR=%s %s cluster status\n\n%s\n",
		front.Addr(),
		keys,
		program,
		logins,
	)
	go spread(front, at)
	select {
	case <-ctx.Done():
	case name := <-ended:
		fmt.Println(name, "has ended; the other nodes continue")
		<-ctx.Done()
	}
	return nil
}

// start runs a node until ctx ends, then asks it to stop.
func start(ctx context.Context, cmd *exec.Cmd, name string, alive *sync.WaitGroup, ended chan<- string) error {
	log, in := io.Pipe()
	cmd.Stderr = in
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this process, which stops the nodes in order
	p, err := child.Start(cmd)
	if err != nil {
		return err
	}
	alive.Go(func() {
		defer log.Close() // a line that is too long ends the copy, and the node continues
		for lines := bufio.NewScanner(log); lines.Scan(); {
			fmt.Printf("%s | %s\n", name, lines.Text())
		}
	})
	alive.Go(func() {
		<-p.Ended()
		in.Close()
		ended <- name
	})
	context.AfterFunc(ctx, p.Terminate)
	return nil
}

// awaitNode waits until a started node accepts connections.
func awaitNode(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return child.AwaitListener(ctx, addr)
}

// spread passes each connection to the next node that accepts it.
func spread(front net.Listener, at []string) {
	var next atomic.Int64
	for {
		c, err := front.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			for range at {
				n, err := net.DialTimeout("tcp", at[int(next.Add(1))%len(at)], time.Second)
				if err != nil {
					continue
				}
				go func() { io.Copy(n, c); n.Close() }()
				io.Copy(c, n)
				n.Close()
				return
			}
		}()
	}
}
