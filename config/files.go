package config

import (
	"net/url"
	"regexp"
	"strings"
)

// Files configures the storage of uploaded and generated files (docs/operations/install.md, "Files").
type Files struct {
	Folder      string `key:"folder"`
	S3URL       string `key:"s3_url"`
	S3Region    string `key:"s3_region" default:"us-east-1"`
	S3AccessKey string `key:"s3_access_key"`
	S3SecretKey Secret `key:"s3_secret_key"`
	S3CAFile    string `key:"s3_ca_file"`
	CDNURL      string `key:"cdn_url"`
	UserQuota   int    `key:"user_quota" range:"1..1048576" default:"100"`
}

// bucketPattern is a name that every S3 server accepts.
var bucketPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// Bucket splits the address of the bucket; "" and "": files are kept in the folder.
func (f Files) Bucket() (host, bucket string, secure bool) {
	u, err := url.Parse(f.S3URL)
	if err != nil {
		return "", "", false
	}
	return u.Host, strings.Trim(u.Path, "/"), u.Scheme == "https"
}

func (k *checker) files() {
	f := k.c.Files
	k.refuse(f.CDNURL != "" && !plainURL(f.CDNURL), "files.cdn_url", wantPlainURL)
	k.refuse((f.S3AccessKey == "") != (f.S3SecretKey == ""), "files.s3_secret_key",
		"must be set if and only if "+k.named("files.s3_access_key")+" is", "files.s3_access_key")
	if f.S3URL == "" {
		k.refuse(strings.TrimSpace(f.Folder) == "", "files.folder", "must name a folder")
		return
	}
	_, bucket, secure := f.Bucket()
	k.refuse(!plainURL(f.S3URL) || !bucketPattern.MatchString(bucket), "files.s3_url",
		"must be https://host/bucket, with a port where needed")
	u, err := url.Parse(f.S3URL)
	k.refuse(err == nil && !secure && !Loopback(u.Hostname()), "files.s3_url",
		"must be https unless its host is loopback: files would cross the network in the clear")
	k.refuse(f.S3AccessKey == "", "files.s3_access_key", "must be set with "+k.named("files.s3_url"), "files.s3_url")
}

const wantPlainURL = "must be http://host or https://host, with port and path where needed"

// plainURL reports whether a text is an http or https URL without a user, a query and a fragment.
func plainURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && validHost(u.Hostname()) && u.User == nil &&
		u.RawQuery == "" && !u.ForceQuery && u.Fragment == ""
}
