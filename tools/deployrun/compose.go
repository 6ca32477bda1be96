package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// composeFile has the fields of Compose that deploy/ uses.
type composeFile struct {
	Name     string                    `yaml:"name"`
	Services map[string]composeService `yaml:"services"`
	Volumes  map[string]struct{}       `yaml:"volumes"`
	Networks map[string]struct {
		IPAM struct {
			Config []struct {
				Subnet string `yaml:"subnet"`
			} `yaml:"config"`
		} `yaml:"ipam"`
	} `yaml:"networks"`
	Shared map[string]any `yaml:",inline"` // only x-…
}

type composeService struct {
	Image       string                                `yaml:"image"`
	Command     []string                              `yaml:"command"`
	Environment map[string]string                     `yaml:"environment"`
	Volumes     []string                              `yaml:"volumes"`
	Networks    networks                              `yaml:"networks"`
	NetworkMode string                                `yaml:"network_mode"`
	Ports       []string                              `yaml:"ports"`
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Restart     string                                `yaml:"restart"`
	StopGrace   time.Duration                         `yaml:"stop_grace_period"`
	ReadOnly    bool                                  `yaml:"read_only"`
	CapDrop     []string                              `yaml:"cap_drop"`
	SecurityOpt []string                              `yaml:"security_opt"`
	Healthcheck *struct {
		Test        []string      `yaml:"test"`
		Interval    time.Duration `yaml:"interval"`
		Retries     int           `yaml:"retries"`
		StartPeriod time.Duration `yaml:"start_period"`
	} `yaml:"healthcheck"`
}

// networks is a list of names, or a map with an address.
type networks struct{ Address string }

func (n *networks) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.SequenceNode {
		return nil
	}
	var all map[string]struct {
		Address string `yaml:"ipv4_address"`
	}
	if err := node.Decode(&all); err != nil {
		return err
	}
	for _, one := range all {
		n.Address = one.Address
	}
	return nil
}

var variable = regexp.MustCompile(`\$\{(\w+)(?:(:-|:\?)([^}]*))?\}`)

// readCompose reads a file with the variables of the .env file beside it. An unknown field is an error.
func readCompose(file string) (*composeFile, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	if lines, err := os.ReadFile(filepath.Join(filepath.Dir(file), ".env")); err == nil {
		for line := range strings.Lines(string(lines)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			env[key] = value
		}
	}
	var missing error
	text = variable.ReplaceAllFunc(text, func(found []byte) []byte {
		part := variable.FindSubmatch(found)
		value := env[string(part[1])]
		if value == "" && string(part[2]) == ":?" {
			missing = fmt.Errorf("%s: %s", part[1], part[3])
		} else if value == "" {
			value = string(part[3])
		}
		return []byte(value)
	})
	made := new(composeFile)
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := errors.Join(missing, d.Decode(made)); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for key := range made.Shared {
		if !strings.HasPrefix(key, "x-") {
			return nil, fmt.Errorf("%s: unknown field %s", file, key)
		}
	}
	return made, nil
}

// project is a Compose file that runs.
type project struct {
	*composeFile
	image   *image
	dir     string // of the file
	work    string // its volumes and logs
	hosts   string
	address map[string]string
	runs    map[string]*container
	ports   []net.Listener
}

func newProject(file, work string, built *image) (*project, error) {
	f, err := readCompose(file)
	if err != nil {
		return nil, err
	}
	p := &project{composeFile: f, image: built, dir: filepath.Dir(file), work: filepath.Join(work, f.Name),
		address: map[string]string{}, runs: map[string]*container{}}
	if err := os.Mkdir(p.work, 0o711); err != nil { // #nosec G301: containers mount what is below
		return nil, err
	}
	prefix := "172.29.0."
	for _, n := range f.Networks {
		prefix = strings.TrimSuffix(n.IPAM.Config[0].Subnet, "0/24")
	}
	for i, name := range slices.Sorted(maps.Keys(f.Services)) {
		if f.Services[name].NetworkMode == "" {
			p.address[name] = f.Services[name].Networks.Address
			if p.address[name] == "" {
				p.address[name] = fmt.Sprint(prefix, 200+i)
			}
		}
	}
	hosts := "127.0.0.1 localhost\n"
	for name, ip := range p.address {
		hosts += ip + " " + name + "\n"
	}
	p.hosts = filepath.Join(p.work, "hosts")
	if err := os.WriteFile(p.hosts, []byte(hosts), 0o644); err != nil { // #nosec G306: containers read it
		return nil, err
	}
	return p, network("br"+prefix[4:6], prefix+"1", slices.Collect(maps.Values(p.address))...)
}

// make returns the container of a service.
func (p *project) make(name string) (*container, error) {
	s := p.Services[name]
	image, mounts, err := p.image, []mount{}, error(nil)
	if s.Image != localImage {
		if image, mounts, err = otherImage(s.Image, p.work); err != nil {
			return nil, err
		}
	}
	c := &container{Name: name, Root: image.Root, UID: image.UID, GID: image.GID, Dir: "/", IP: p.address[name],
		Env: slices.Clone(image.Env), ReadOnly: s.ReadOnly, Mounts: mounts}
	for key, value := range s.Environment {
		c.Env = append(c.Env, key+"="+value)
	}
	c.Args = append(slices.Clone(image.Start), image.Args...)
	if s.Command != nil {
		c.Args = append(slices.Clone(image.Start), s.Command...)
	}
	switch {
	case slices.Equal(s.CapDrop, []string{"ALL"}):
		c.NoCaps = true
	case s.CapDrop != nil:
		return nil, fmt.Errorf("%s: unknown cap_drop %q", name, s.CapDrop)
	}
	for _, o := range s.SecurityOpt {
		if o != "no-new-privileges:true" {
			return nil, fmt.Errorf("%s: unknown security_opt %q", name, o)
		}
		c.NoNewPrivs = true
	}
	volumes := slices.Clone(s.Volumes)
	for _, path := range image.Volumes {
		if !slices.ContainsFunc(volumes, func(v string) bool { return strings.Split(v, ":")[1] == path }) {
			volumes = append(volumes, name+"-anonymous:"+path)
		}
	}
	if c.IP != "" {
		c.Mounts = append(c.Mounts, mount{From: p.hosts, To: "/etc/hosts"})
	}
	for _, v := range volumes {
		part := strings.Split(v, ":")
		m := mount{To: part[1], ReadOnly: len(part) == 3 && part[2] == "ro"}
		if strings.HasPrefix(part[0], ".") {
			m.From = filepath.Join(p.dir, part[0])
			if _, err := os.Stat(m.From); err != nil {
				return nil, err // an engine would make a folder of root
			}
		} else {
			m.From = filepath.Join(p.work, "volume-"+part[0])
			if err := image.copyVolume(m.From, m.To); err != nil {
				return nil, err
			}
		}
		c.Mounts = append(c.Mounts, m)
	}
	return c, nil
}

// up starts a service after those that it depends on, and waits until it is healthy.
func (p *project) up(name string) error {
	if p.runs[name] != nil {
		return nil
	}
	s := p.Services[name]
	for on := range s.DependsOn {
		if err := p.up(on); err != nil {
			return err
		}
		if c := p.runs[on]; s.DependsOn[on].Condition == "service_completed_successfully" {
			if <-c.done; c.code != 0 {
				text, _ := os.ReadFile(c.logFile())
				return fmt.Errorf("%s ended with %d: %s", on, c.code, text)
			}
		} else if s.DependsOn[on].Condition != "service_healthy" {
			return fmt.Errorf("%s: unknown condition %q", name, s.DependsOn[on].Condition)
		}
	}
	c, err := p.make(name)
	if err != nil {
		return err
	}
	if err := c.start(p.work); err != nil {
		return err
	}
	p.runs[name] = c
	for _, port := range s.Ports {
		part := strings.Split(port, ":")
		if len(part) != 3 {
			return fmt.Errorf("%s: port %q names no address of this machine", name, port)
		}
		l, err := forward(part[0]+":"+part[1], func() string { return c.IP + ":" + part[2] })
		if err != nil {
			return err
		}
		p.ports = append(p.ports, l)
	}
	return p.healthy(name)
}

func (p *project) healthy(name string) error {
	h, c := p.Services[name].Healthcheck, p.runs[name]
	if h == nil {
		return nil
	}
	args := h.Test[1:]
	if h.Test[0] == "CMD-SHELL" {
		args = []string{"/bin/sh", "-c", h.Test[1]}
	}
	began := time.Now()
	for failed := 0; ; {
		_, err := c.exec(nil, args...)
		if err == nil {
			return nil
		}
		if time.Since(began) > h.StartPeriod {
			failed++
		}
		if failed >= h.Retries || !c.lives() && p.Services[name].Restart == "" {
			text, _ := os.ReadFile(c.logFile())
			return fmt.Errorf("%s is not healthy: %w\n%s", name, err, text)
		}
		if !c.lives() { // restart: unless-stopped
			if err := c.start(p.work); err != nil {
				return err
			}
		}
		time.Sleep(min(h.Interval, time.Second))
	}
}

// restart plays docker compose restart, and waits until the service is healthy again.
func (p *project) restart(name string) error {
	c := p.runs[name]
	if err := c.stop(max(p.Services[name].StopGrace, 10*time.Second)); err != nil {
		return err
	}
	if err := c.start(p.work); err != nil {
		return err
	}
	return p.healthy(name)
}

// down plays docker compose down --volumes.
func (p *project) down() error {
	for _, l := range p.ports {
		l.Close()
	}
	var errs []error
	for name, c := range p.runs {
		errs = append(errs, c.stop(max(p.Services[name].StopGrace, 10*time.Second)))
	}
	clear(p.runs)
	return errors.Join(append(errs, os.RemoveAll(p.work))...)
}

// forward accepts connections for a container, as a published port or a Service does.
func forward(addr string, to func() string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := net.Dial("tcp", to())
				if err != nil {
					return
				}
				defer out.Close()
				go func() {
					_, _ = io.Copy(out, in)
					_ = out.(*net.TCPConn).CloseWrite()
				}()
				_, _ = io.Copy(in, out)
				_ = in.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, in) // a reset would take an answer from a client that still sends
			}()
		}
	}()
	return l, nil
}
