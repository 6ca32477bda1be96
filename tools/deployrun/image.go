package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// image is what an engine knows of an image.
type image struct {
	Root     string
	Env      []string
	UID, GID int
	Volumes  []string
	Start    []string // ENTRYPOINT
	Args     []string // CMD
}

// buildImage plays docker build: the RUN lines of the first stage run in the working copy, and the last stage becomes a
// folder.
func buildImage(root, work string) (*image, error) {
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		return nil, err
	}
	out := filepath.Join(work, "out") + "/"
	made := &image{Root: filepath.Join(work, "image")}
	for _, dir := range []string{out, made.Root} {
		if err := os.Mkdir(dir, 0o755); err != nil { // #nosec G301: as in an image
			return nil, err
		}
	}
	last := false
	for _, line := range instructions(string(text)) {
		word, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		switch {
		case word == "FROM":
			last = rest == "scratch"
		case !last && (word == "WORKDIR" || word == "COPY" || word == "ARG"):
		case !last && word == "RUN":
			c := exec.Command("sh", "-ec", strings.ReplaceAll(rest, "/out/", out))
			c.Dir = root
			c.Env = append(os.Environ(), "VERSION=dev", "COMMIT=unknown", "DATE=unknown")
			if text, err := c.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("%s: %w: %s", rest, err, text)
			}
		case last:
			err = made.apply(word, rest, func(path string) string {
				if below, ok := strings.CutPrefix(path, "/out/"); ok {
					return out + below
				}
				if below, ok := strings.CutPrefix(path, "/src/"); ok {
					return filepath.Join(root, below)
				}
				return path
			})
		default:
			err = fmt.Errorf("unknown instruction %s", word)
		}
		if err != nil {
			return nil, fmt.Errorf("%s in the Dockerfile: %w", line, err)
		}
	}
	return made, nil
}

// instructions joins continued lines and drops comments.
func instructions(text string) (all []string) {
	joined := ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		before, more := strings.CutSuffix(line, `\`)
		joined += before
		if !more {
			all, joined = append(all, joined), ""
		}
	}
	return all
}

func (i *image) apply(word, rest string, from func(string) string) (err error) {
	switch word {
	case "COPY":
		uid, gid := 0, 0
		paths := strings.Fields(rest)
		for len(paths) > 0 && strings.HasPrefix(paths[0], "--") {
			if owner, ok := strings.CutPrefix(paths[0], "--chown="); ok {
				if uid, gid, err = ids(owner); err != nil {
					return err
				}
			} else if paths[0] != "--from=build" {
				return fmt.Errorf("unknown flag %s", paths[0])
			}
			paths = paths[1:]
		}
		to := filepath.Join(i.Root, paths[len(paths)-1])
		if strings.HasSuffix(rest, "/") {
			if err := os.MkdirAll(to, 0o755); err != nil { // #nosec G301: as in an image
				return err
			}
		}
		for _, path := range paths[:len(paths)-1] {
			if err := run("cp", "-a", "-L", from(path), to); err != nil {
				return err
			}
		}
		return run("chown", "-R", fmt.Sprintf("%d:%d", uid, gid), to)
	case "USER":
		i.UID, i.GID, err = ids(rest)
	case "ENV":
		i.Env = append(i.Env, strings.Fields(rest)...)
	case "VOLUME":
		i.Volumes = append(i.Volumes, rest)
	case "ENTRYPOINT":
		err = json.Unmarshal([]byte(rest), &i.Start)
	case "CMD":
		err = json.Unmarshal([]byte(rest), &i.Args)
	case "EXPOSE":
	default:
		err = fmt.Errorf("unknown instruction")
	}
	return err
}

func ids(text string) (uid, gid int, err error) {
	u, g, _ := strings.Cut(text, ":")
	if uid, err = strconv.Atoi(u); err == nil {
		gid, err = strconv.Atoi(g)
	}
	return uid, gid, err
}

// copyVolume makes the folder of a new volume, with what the image has at its path: content, owner and mode.
func (i *image) copyVolume(folder, path string) error {
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	from := filepath.Join(i.Root, path)
	if _, err := os.Stat(from); err != nil {
		return os.MkdirAll(folder, 0o755) // #nosec G301: as the engines do
	}
	return run("cp", "-a", from, folder)
}

const systemPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// postgres is played as by the entrypoint of its image: while it makes the database, the server listens on its socket
// only.
const postgresScript = `bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
mkdir -p "$PGDATA" /run/postgresql && chown postgres: "$PGDATA" /run/postgresql && chmod 700 "$PGDATA"
as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
if ! [ -e "$PGDATA/PG_VERSION" ]; then
	echo "$POSTGRES_PASSWORD" >/run/postgresql/pw && chmod 644 /run/postgresql/pw
	as $bin/initdb -D "$PGDATA" -U "$POSTGRES_USER" --pwfile=/run/postgresql/pw -A trust -E UTF8 >/dev/null
	as $bin/pg_ctl -D "$PGDATA" -o "-c listen_addresses='' -k /run/postgresql" -w start >/dev/null
	as $bin/createdb -h /run/postgresql -U "$POSTGRES_USER" "$POSTGRES_DB"
	sleep 1 # the scripts of an image take their time
	as $bin/pg_ctl -D "$PGDATA" -w stop >/dev/null
	echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
fi
exec setpriv --reuid=postgres --regid=postgres --clear-groups $bin/postgres -D "$PGDATA" \
	-c listen_addresses='*' -k /run/postgresql`

// otherImage is one that the programs of this machine play, in a folder that has only them.
func otherImage(name, work string) (i *image, mounts []mount, err error) {
	kind, _, _ := strings.Cut(name, ":")
	i = &image{Root: filepath.Join(work, kind), Env: []string{systemPath}}
	inMemory := []string{}
	switch kind {
	case "busybox":
	case "nginx":
		i.Args = []string{"nginx", "-g", "daemon off;"}
		inMemory = []string{"/run", "/tmp", "/var/lib/nginx", "/var/log/nginx"}
	case "postgres":
		i.Env = append(i.Env, "PGDATA=/var/lib/postgresql/data")
		i.Args = []string{"sh", "-ec", postgresScript}
		inMemory = []string{"/run", "/tmp"}
	default:
		return nil, nil, fmt.Errorf("unknown image %s", name)
	}
	for _, dir := range []string{"/bin", "/etc", "/lib", "/lib64", "/sbin", "/usr"} {
		if from, err := filepath.EvalSymlinks(dir); err == nil {
			mounts = append(mounts, mount{From: from, To: dir})
		}
	}
	for _, dir := range inMemory {
		mounts = append(mounts, mount{To: dir})
	}
	return i, mounts, sh(fmt.Sprintf("mkdir -p %[1]s/var && ln -sfn /run %[1]s/var/run", i.Root))
}
