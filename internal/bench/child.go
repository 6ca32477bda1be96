package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"syscall"

	"github.com/gofiber/fiber/v2"

	"castellan/cmd/app"
	"castellan/config"
	"castellan/domain/delivery/message"
)

// childRole names the variable that makes this program a child: the service, a bare Fiber handler, or idle sockets.
const (
	childRole   = "BENCH_CHILD"
	roleService = "service"
	roleFiber   = "fiber"
	roleSockets = "sockets"
)

// codesFile is the descriptor of the pipe that carries codes to the driver.
const codesFile = 3

// runRole runs one role until its standard input ends: a child never outlives the bench.
func runRole(role string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	// The end of the input does not call stop: a SIGTERM that arrives with it would kill the process.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	addr := os.Getenv("CASTELLAN_HTTP_ADDR")
	if role != roleSockets { // their input are tokens
		go func() {
			obey(os.Stdin, os.Stdout)
			cancel()
		}()
	}
	var err error
	switch role {
	case roleService:
		err = serve(ctx)
	case roleFiber:
		err = serveBare(ctx, addr)
	case roleSockets:
		err = holdSockets(addr, os.Stdin, os.Stdout)
	default:
		err = fmt.Errorf("no role %q", role)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "bench child:", err)
		return 1
	}
	return 0
}

func serve(ctx context.Context) error {
	cfg, err := config.Load("", os.Environ())
	if err != nil {
		return err
	}
	s := sink{os.NewFile(codesFile, "codes")}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: cfg.Log.SlogLevel()}))
	slog.SetDefault(log)
	return app.Serve(ctx, cfg, app.Options{Version: "bench", Commit: "bench", Log: log, Out: io.Discard,
		Senders: map[message.Channel]message.Sender{message.SMS: s, message.MAIL: s}})
}

// sink passes each message to the driver instead of sending it: the message's key and its code.
type sink struct{ w io.Writer }

func (s sink) Send(_ context.Context, key string, m message.Rendered) error {
	_, err := io.WriteString(s.w, key+" "+m.Code+"\n")
	return err
}

// bareBody has the length of the answer to a login.
var bareBody = strings.Repeat("x", 320)

// serveBare is the lower bound: a framework that reads a request and answers.
func serveBare(ctx context.Context, addr string) error {
	a := fiber.New(fiber.Config{DisableStartupMessage: true})
	a.Get("/health/ready", func(c *fiber.Ctx) error { return c.SendStatus(fiber.StatusOK) })
	a.Post("/auth/login", func(c *fiber.Ctx) error {
		if len(c.Body()) == 0 {
			return fiber.ErrBadRequest
		}
		return c.SendString(bareBody)
	})
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		a.Shutdown()
	}()
	return a.Listener(l)
}

// The orders to a child, one a line; it answers each with a line.
const (
	orderCollect = "collect" // collect garbage and release memory
	orderProfile = "profile" // with a file: begin a CPU profile
	orderStop    = "stop"    // end it, and write beside it the allocations since the start
)

// obey executes orders until there are no more.
func obey(in io.Reader, out io.Writer) {
	var profile *os.File
	for lines := bufio.NewScanner(in); lines.Scan(); {
		order, file, _ := strings.Cut(lines.Text(), " ")
		var err error
		switch order {
		case orderCollect:
			debug.FreeOSMemory()
		case orderProfile:
			if profile, err = os.Create(file); err == nil {
				err = pprof.StartCPUProfile(profile)
			}
		case orderStop:
			pprof.StopCPUProfile()
			err = errors.Join(profile.Close(), allocations(profile.Name()+".allocs"))
		default:
			err = fmt.Errorf("no order %q", order)
		}
		if err != nil {
			fmt.Fprintln(out, err)
			continue
		}
		fmt.Fprintln(out, "ok")
	}
}

func allocations(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
