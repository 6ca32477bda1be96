package firewall_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"castellan/domain/kit/storetest"
	"castellan/http/guard/rls"
)

// envoy is the part of Envoy's published descriptors (envoy/service/ratelimit/v3/rls.proto) that matters here.
const envoy = `name: "rls.proto" package: "envoy" syntax: "proto3"
message_type { name: "RateLimitRequest"
	field { name: "domain" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
	field { name: "descriptors" number: 2 type: TYPE_MESSAGE type_name: ".envoy.RateLimitDescriptor"
		label: LABEL_REPEATED }
	field { name: "hits_addend" number: 3 type: TYPE_UINT32 label: LABEL_OPTIONAL } }
message_type { name: "RateLimitDescriptor"
	field { name: "entries" number: 1 type: TYPE_MESSAGE type_name: ".envoy.Entry" label: LABEL_REPEATED }
	field { name: "hits_addend" number: 3 type: TYPE_MESSAGE type_name: ".envoy.UInt64Value" label: LABEL_OPTIONAL }
	field { name: "is_negative_hits" number: 4 type: TYPE_BOOL label: LABEL_OPTIONAL } }
message_type { name: "Entry"
	field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
	field { name: "value" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL } }
message_type { name: "UInt64Value" field { name: "value" number: 1 type: TYPE_UINT64 label: LABEL_OPTIONAL } }
message_type { name: "Duration"
	field { name: "seconds" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL }
	field { name: "nanos" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL } }
enum_type { name: "Code" value { name: "UNKNOWN" number: 0 } value { name: "OK" number: 1 }
	value { name: "OVER_LIMIT" number: 2 } }
message_type { name: "DescriptorStatus"
	field { name: "code" number: 1 type: TYPE_ENUM type_name: ".envoy.Code" label: LABEL_OPTIONAL }
	field { name: "limit_remaining" number: 3 type: TYPE_UINT32 label: LABEL_OPTIONAL }
	field { name: "duration_until_reset" number: 4 type: TYPE_MESSAGE type_name: ".envoy.Duration"
		label: LABEL_OPTIONAL } }
message_type { name: "RateLimitResponse"
	field { name: "overall_code" number: 1 type: TYPE_ENUM type_name: ".envoy.Code" label: LABEL_OPTIONAL }
	field { name: "statuses" number: 2 type: TYPE_MESSAGE type_name: ".envoy.DescriptorStatus" label: LABEL_REPEATED } }`

// D-WAF-22: a client of gRPC counts descriptors under the limits of its key, over a real connection.
func TestEnvoysRateLimitService(t *testing.T) {
	var file descriptorpb.FileDescriptorProto
	storetest.Must(t, prototext.Unmarshal([]byte(envoy), &file))
	made := storetest.Value(protodesc.NewFile(&file, nil))(t)
	message := func(name string) *dynamicpb.Message {
		return dynamicpb.NewMessage(made.Messages().ByName(protoreflect.Name(name)))
	}
	both(t, func(t *testing.T, s *service) {
		const rule = `"appId":"shop","period":60000,"targetEntityType":`
		s.add("ip", "rate_limit", rule+`"IP","limit":2,"targetResources":["LIMIT remote_address"]`)
		s.add("user", "rate_limit", rule+`"USER_ID","limit":5,"targetResources":["LIMIT path|user"]`)
		server := (&rls.Handler{Serve: s.Server.App.Server().Handler, Path: "/limit"}).Server()
		l := storetest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(l) }()
		defer func() { server.Stop(); <-ended }()
		conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		storetest.Must(t, err)
		defer conn.Close()
		method := "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
		ask := func(key, text, want string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if key != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "service-auth", key)
			}
			q, a := message("RateLimitRequest"), message("RateLimitResponse")
			storetest.Must(t, prototext.Unmarshal([]byte(text), q))
			got := ""
			if err := conn.Invoke(ctx, method, q, a); err != nil {
				got = status.Code(err).String()
			} else if statuses := a.Get(a.Descriptor().Fields().ByName("statuses")).List(); statuses.Len() > 0 {
				got = fmt.Sprint(a.Get(a.Descriptor().Fields().ByName("overall_code")).Enum())
				for i := range statuses.Len() {
					one, of := statuses.Get(i).Message(), a.Descriptor().Fields().ByName("statuses").Message().Fields()
					reset := one.Get(of.ByName("duration_until_reset")).Message()
					seconds := reset.Get(reset.Descriptor().Fields().ByName("seconds")).Int()
					got += fmt.Sprintf(" %d:%d:%d", one.Get(of.ByName("code")).Enum(), one.Get(of.ByName("limit_remaining")).Uint(),
						seconds)
				}
			}
			storetest.Equal(t, got, want, text, "by", key)
		}
		address := func(ip string) string {
			return `descriptors { entries { key: "remote_address" value: "` + ip + `" } }`
		}
		user := func(path, user, more string) string {
			return `descriptors { entries { key: "path" value: "` + path + `" } entries { key: "user" value: "` + user +
				`" } ` + more + ` }`
		}
		const shop = `domain: "shop" `
		// The code of all, and of each descriptor its code, the rest and the seconds until the reset.
		ask("shop", shop+address("192.0.2.1"), "1 1:1:60")
		ask("shop", shop+address("192.0.2.1")+user("/a", "1", ""), "1 1:0:60 1:4:60")
		ask("shop", shop+address("192.0.2.1")+user("/a", "1", ""), "2 2:0:60 1:3:60")
		ask("shop", shop+`hits_addend: 3 `+user("/a", "1", ""), "1 1:0:60")
		ask("shop", shop+user("/a", "1", "hits_addend {}"), "2 2:0:60")
		ask("shop", shop+user("/a", "2", "hits_addend {}"), "1 1:5:0")
		ask("shop", shop+`hits_addend: 3 `+user("/a", "2", "hits_addend { value: 2 }"), "1 1:3:60")
		// Parts of an entity stay distinct, an entity of any text is counted, and an unknown descriptor is allowed.
		ask("shop", shop+user("/a|2", "3", ""), "1 1:4:60")
		ask("shop", shop+user("/a", "2|3", ""), "1 1:4:60")
		long := user("/long?"+strings.Repeat("&", 20_000), "1", "") // in JSON longer than a body of the interface
		for rest := 4; rest >= 0; rest-- {
			ask("shop", shop+long, fmt.Sprintf("1 1:%d:60", rest))
		}
		ask("shop", shop+long, "2 2:0:60")
		ask("shop", shop+address("no address"), "2 2:0:0")
		ask("shop", shop+`descriptors { entries { key: "other" value: "1" } }`, "1 1:0:0")
		for _, refused := range []struct{ key, text, want string }{
			{"", shop + address("192.0.2.9"), codes.Unauthenticated.String()},
			{"bank", shop + address("192.0.2.9"), codes.PermissionDenied.String()}, // another service's limits
			{"bank", `domain: "bank" ` + address("192.0.2.9"), codes.PermissionDenied.String()},
			{"shop", shop, codes.InvalidArgument.String()},
			{"shop", shop + `descriptors {}`, codes.InvalidArgument.String()},
			{"shop", shop + `hits_addend: 1001 ` + address("192.0.2.9"), codes.InvalidArgument.String()},
			{"shop", shop + user("/a", "2", "is_negative_hits: true"), codes.InvalidArgument.String()},
		} {
			ask(refused.key, refused.text, refused.want)
		}
		// Rules for the endpoint apply to the address of the connection.
		s.add("no-gateway", "blacklist", `"targetEntityType":"IP","targetEntities":["127.0.0.1"],"targetResources":`+
			`["POST /limit"]`)
		ask("shop", shop+address("192.0.2.9"), codes.PermissionDenied.String())
	})
}
