"""A stand-in for EC2: moto's server, and for each instance a real sshd on the loopback address that moto gives it.

Added to moto: ClientToken, instances that are not known at once, what cloud-init and a shutdown do, refusals by demand.
"""

from __future__ import annotations

import contextlib
import copy
import json
import logging
import shutil
import socket
import subprocess
import tempfile
import threading
import uuid
from collections import Counter
from pathlib import Path
from typing import Any, Self
from unittest import mock

import boto3
from moto import backends
from moto.core.responses import BaseResponse
from moto.ec2.exceptions import EC2ClientError, InvalidAMIIdError
from moto.ec2.models import EC2Backend, amis, ec2_backends
from moto.ec2.models.instances import Instance, StateReason
from moto.server import ThreadedMotoServer
from moto.utilities.utils import load_resource

from tests.support.standins.ecs_peer import kill_marked
from tests.support.standins.private_sshd import PrivateSshd, new_key
from tests.support.standins.standin_place import Fault, Faults

ACCOUNT, REGION = "123456789012", "us-east-1"
MARKER = "EC2_STANDIN_INSTANCE"

logging.getLogger("werkzeug").setLevel(logging.ERROR)


class Machine:
    """What boots when an instance is launched: an sshd with the keys from its user data, and a shutdown timer."""

    def __init__(self, instance: Any, standin: Ec2Standin) -> None:
        self.instance = instance
        self.marker = f"{MARKER}={instance.id}"
        self.folder = Path(tempfile.mkdtemp(prefix="ec2-standin-"))
        self._switch = threading.Lock()
        self._halted = False
        config = json.loads(instance.user_data.decode().removeprefix("#cloud-config\n"))
        keys = config["ssh_keys"] if standin.host_key_from_user_data else _other_key(self.folder)
        self._sshd = PrivateSshd(
            self.folder,
            instance.private_ip,
            standin.port,
            keys["ed25519_private"],
            config["users"][0]["ssh_authorized_keys"],
            dict([self.marker.split("=")]),
        )
        if (disk := standin.disks / instance.image_id).exists():
            _copy(disk, self.folder / "home")
        ((_, _, minutes),) = config["runcmd"]
        self._timers = [
            threading.Timer(standin.boot_s, self._boot),
            threading.Timer(
                int(minutes) * standin.minute_s, standin.end, [instance, "Client.InstanceInitiatedShutdown"]
            ),
        ]
        for timer in self._timers:
            timer.daemon = True
            timer.start()

    def _boot(self) -> None:
        with self._switch:
            if not self._halted:
                self._sshd.start()

    def stop(self) -> None:
        with self._switch:
            self._halted = True
        self._sshd.kill()
        kill_marked(self.marker)

    def start(self) -> None:
        self._halted = False
        self._boot()

    def restart_sshd(self) -> None:
        self._sshd.kill()
        self._boot()

    def halt(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Ec2Standin:
    """A context manager; ``url`` is the endpoint, ``subnet`` a subnet whose addresses lead to this machine."""

    def __init__(self) -> None:
        self.boot_s = 0.02
        self.minute_s = 60.0
        self.host_key_from_user_data = True
        self.late_calls = 0  # how many calls of a kind after a launch do not know the instance yet
        self.calls: Counter[str] = Counter()
        self.machines: dict[str, Machine] = {}
        self.faults = Faults()
        self._unknown: dict[str, Counter[str]] = {}  # instance → calls of a kind that have not known it
        self._tokens: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._patches = contextlib.ExitStack()
        self.image_fails = False
        self.disks = Path(self._patches.enter_context(tempfile.TemporaryDirectory(prefix="ec2-standin-disks-")))

    def __enter__(self) -> Self:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._patch(BaseResponse, "call_action", self._call_action)
        self._patch(EC2Backend, "run_instances", self._run_instances)
        self._patch(EC2Backend, "create_image", self._create_image)
        self._patch(Instance, "terminate", self._terminate)
        self._patch(Instance, "stop", self._stop)
        self._patch(Instance, "start", self._start)
        # Amazon's own images are enough; over a thousand for ECS, in each region that is looked at, take half a second.
        self._patches.enter_context(mock.patch.object(amis, "load_resource", _without_ecs_images))
        modules = list(backends.list_of_moto_modules())  # which moto lists anew for each request
        self._patches.enter_context(mock.patch.object(backends, "list_of_moto_modules", return_value=modules))
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.url = f"http://{host}:{port}"
        ec2 = self.client("ec2")
        vpc = ec2.create_vpc(CidrBlock="127.0.0.0/16")["Vpc"]["VpcId"]
        self.subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="127.0.10.0/24")["Subnet"]["SubnetId"]
        self.group = ec2.create_security_group(GroupName="given", Description="given", VpcId=vpc)["GroupId"]
        self.calls.clear()
        return self

    def __exit__(self, *exc: object) -> None:
        for machine in self.machines.values():
            machine.halt()
        self._server.stop()
        self._patches.close()
        ec2_backends.clear()

    def _patch(self, kind: type, name: str, replacement: Any) -> None:
        original = getattr(kind, name)
        self._patches.enter_context(
            mock.patch.object(kind, name, lambda this, *args, **more: replacement(original, this, *args, **more))
        )

    # -- what tests look at and cause

    def client(self, service: str) -> Any:
        session: Any = boto3.Session(aws_access_key_id="x", aws_secret_access_key="x", region_name=REGION)
        return session.client(service, endpoint_url=self.url)

    def refuse(self, operation: str, code: str, message: str = "no", *, times: float = 1, skip: int = 0) -> None:
        """Answer calls of an operation with an error, after ``skip`` that are answered well."""
        self.faults.add(operation, code=code, message=message, times=times, skip=skip)

    def end(self, instance: Any, code: str, message: str = "") -> None:
        """What AWS may do to an instance by itself, or its own shutdown."""
        instance.terminate()
        instance.state_reason = StateReason(message or code, code)

    def leftovers(self) -> dict[str, list[str]]:
        """Everything that a run may leave in an account."""
        backend = ec2_backends[ACCOUNT][REGION]
        alive = [each.id for each in backend.all_instances() if each.state != "terminated"]
        return {
            "instances": alive,
            "volumes": list(backend.volumes),
            "key pairs": list(backend.key_pairs),
            "network interfaces": list(backend.enis),
            "images": [each.id for each in backend.amis.values() if each.owner_alias is None],
            "snapshots": [each.id for each in backend.snapshots.values() if each.owner_id == ACCOUNT],
        }

    def running(self) -> list[Machine]:
        return [each for each in self.machines.values() if each.instance.state == "running"]

    # -- what is added to moto

    def _call_action(self, original: Any, response: Any) -> Any:
        action = response._get_action()
        self.calls[action] += 1
        with self._lock:
            fault = self.faults.next(action)
            late = fault is None and self._not_known_yet(action, response)
        if late and action == "DescribeInstances":
            return 200, {}, "<DescribeInstancesResponse><reservationSet/></DescribeInstancesResponse>"
        if late:
            fault = Fault(action, code="InvalidInstanceID.NotFound", message="The instance ID does not exist")
        if fault is not None:
            if fault.reset == "after":  # it does what it was asked, and answers that it did not
                original(response)
            error = f"<Error><Code>{fault.code}</Code><Message>{fault.message}</Message></Error>"
            body = f"<Response><Errors>{error}</Errors><RequestID>{uuid.uuid4()}</RequestID></Response>"
            if response.service_name == "sts":
                body = f"<ErrorResponse>{error}</ErrorResponse>"
            return 400, {}, body
        return original(response)

    def _not_known_yet(self, action: str, response: Any) -> bool:
        """Whether one of the instances that are asked for was launched too few calls ago."""
        asked = {value for values in response.querystring.values() for value in values}
        young = [self._unknown[each] for each in asked & self._unknown.keys() if action != "RunInstances"]
        for calls in young:
            calls[action] += 1
        return any(calls[action] <= self.late_calls for calls in young)

    def _run_instances(self, original: Any, backend: Any, *args: Any, **more: Any) -> Any:
        with self._lock:
            image = backend.amis.get(args[0] if args else more["image_id"])
            if image is not None and image.state != "available":
                raise InvalidAMIIdError([image.id])
            token = more["client_token"]
            if token not in self._tokens:
                self._tokens[token] = original(backend, *args, **more)
                for instance in self._tokens[token].instances:
                    self.machines[instance.id] = Machine(instance, self)
                    self._unknown[instance.id] = Counter()
            return self._tokens[token]

    def _create_image(
        self, original: Any, backend: Any, instance_id: str, name: str, description: str, tag_specifications: Any
    ) -> Any:
        """An image with the files of now, which is available a little later; moto tags no snapshots."""
        if name in {each.name for each in backend.amis.values()}:
            raise EC2ClientError("InvalidAMIName.Duplicate", f"AMI name {name} is already in use")
        tags = {each["ResourceType"]: each["Tags"] for each in tag_specifications}
        image_tags = [{"ResourceType": "image", "Tags": tags["image"]}]
        image = original(backend, instance_id, name, description, tag_specifications=image_tags)
        for tag in tags["snapshot"]:
            image.ebs_snapshot.add_tag(tag["Key"], tag["Value"])
        image.state = "pending"
        _copy(self.machines[instance_id].folder / "home", self.disks / image.id)
        timer = threading.Timer(
            2 * self.boot_s, setattr, [image, "state", "failed" if self.image_fails else "available"]
        )
        timer.daemon = True
        timer.start()
        return image

    def _terminate(self, original: Any, instance: Any) -> Any:
        with self._lock:
            if instance.state == "terminated":
                return copy.copy(instance._state)  # moto would look for its network interface
            self.machines[instance.id].halt()
            return original(instance)

    def _stop(self, original: Any, instance: Any, *args: Any, **more: Any) -> Any:
        self.machines[instance.id].stop()
        return original(instance, *args, **more)

    def _start(self, original: Any, instance: Any, *args: Any, **more: Any) -> Any:
        if instance.id in self.machines:  # moto starts a new instance too, before its machine is there
            self.machines[instance.id].start()
        return original(instance, *args, **more)


def _copy(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    subprocess.run(["cp", "-a", f"{source}/.", target], check=True)


def _without_ecs_images(path: str) -> Any:
    return [] if "/ecs/" in path else load_resource(path)


def _other_key(folder: Path) -> dict[str, str]:
    new_key(folder / "other")
    return {"ed25519_private": (folder / "other").read_text()}
