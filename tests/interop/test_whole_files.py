"""Whole files of one small module: every number of a written file is one of the datasheet."""

import datetime
import re

from modurob import ModuleType, Organism
from modurob.interop import write_cobra_modules, write_mjcf, write_srdf, write_urdf

PLUG = {"connector": "plug", "mates": ["plug"], "turns": [0, 90], "reference": [1, 0, 0]}
JACK = ModuleType(
    name="jack", symbol="J", size=0.2, title="Jack",
    bodies=[
        {"name": "A", "mass": 2, "center_of_mass": [0, 0, 0.05], "inertia": [0.01, 0.02, 0.03]},
        {"name": "B", "mass": 1, "center_of_mass": [0, 0.1, 0], "inertia": [0.004, 0.005, 0.006]},
    ],
    joints=[
        {"name": "hinge", "kind": "revolute", "parent": "A", "child": "B", "axis": [0, 1, 0],
         "position": [0, 0, 0.1], "lower": -0.5, "upper": 1.5, "viscous": 0.25, "coulomb": 0.125},
    ],
    ports=[
        {"label": 1, "body": "A", "position": [0, 0, -0.1], "normal": [0, 0, -1], **PLUG},
        {"label": 2, "body": "B", "position": [0, 0, 0.1], "normal": [0, 0, 1], **PLUG},
    ],
    shapes=[
        {"body": "A", "form": "box", "size": [0.1, 0.2, 0.3], "color": "#ff8000"},
        {"body": "B", "form": "cylinder", "size": [0.05, 0.4], "position": [0, 0, 0.2],
         "color": "#0080ff"},
        {"body": "B", "form": "sphere", "size": [0.06], "color": "#102030"},
    ],
)  # fmt: skip
XML = '<?xml version="1.0" encoding="utf-8"?>'
ORANGE, BLUE = "1.0 0.5019607843137255 0.0 1.0", "0.0 0.5019607843137255 1.0 1.0"
DARK = "0.06274509803921569 0.12549019607843137 0.18823529411764706 1.0"
HERE = 'pos="0.0 0.0 0.0" quat="1.0 0.0 0.0 0.0"'

MJCF = f"""\
{XML}
<mujoco model="organism">
 <compiler angle="radian" inertiafromgeom="false" balanceinertia="false" \
boundmass="0" boundinertia="0" fusestatic="false"/>
 <option gravity="0.0 0.0 -9.81" integrator="RK4" timestep="0.002"/>
 <default>
  <geom contype="0" conaffinity="0"/>
 </default>
 <worldbody>
  <body name="ground" {HERE}>
   <inertial pos="0.0 0.0 0.05" mass="2.0" diaginertia="0.01 0.02 0.03"/>
   <site name="m0.A" {HERE} size="0.001" group="5"/>
   <geom name="m0.A:0" type="box" size="0.05 0.1 0.15" {HERE} rgba="{ORANGE}"/>
   <body name="m0.B" pos="0.0 0.0 0.1" quat="1.0 0.0 0.0 0.0">
    <joint name="m0.hinge" type="hinge" axis="0.0 1.0 0.0" limited="true" \
range="-0.5 1.5" damping="0.25" frictionloss="0.125"/>
    <inertial pos="0.0 0.1 0.0" mass="1.0" diaginertia="0.004 0.005 0.006"/>
    <site name="m0.B" {HERE} size="0.001" group="5"/>
    <geom name="m0.B:0" type="cylinder" size="0.05 0.2" \
pos="0.0 0.0 0.2" quat="1.0 0.0 0.0 0.0" rgba="{BLUE}"/>
    <geom name="m0.B:1" type="sphere" size="0.06" {HERE} rgba="{DARK}"/>
   </body>
  </body>
 </worldbody>
 <actuator>
  <motor name="m0.hinge" joint="m0.hinge"/>
 </actuator>
</mujoco>
"""

URDF = f"""\
{XML}
<robot name="organism">
 <material name="#0080ff">
  <color rgba="{BLUE}"/>
 </material>
 <material name="#102030">
  <color rgba="{DARK}"/>
 </material>
 <material name="#ff8000">
  <color rgba="{ORANGE}"/>
 </material>
 <link name="world">
  <inertial>
   <origin xyz="0.0 0.0 0.05" rpy="0 0 0"/>
   <mass value="2.0"/>
   <inertia ixx="0.01" ixy="0.0" ixz="0.0" iyy="0.02" iyz="0.0" izz="0.03"/>
  </inertial>
 </link>
 <link name="m0.A">
  <visual>
   <origin xyz="0.0 0.0 0.0" rpy="0.0 0.0 0.0"/>
   <geometry>
    <box size="0.1 0.2 0.3"/>
   </geometry>
   <material name="#ff8000"/>
  </visual>
 </link>
 <joint name="fixed:m0.A" type="fixed">
  <origin xyz="0.0 0.0 0.0" rpy="0.0 0.0 0.0"/>
  <parent link="world"/>
  <child link="m0.A"/>
 </joint>
 <link name="m0.B">
  <inertial>
   <origin xyz="0.0 0.1 0.0" rpy="0 0 0"/>
   <mass value="1.0"/>
   <inertia ixx="0.004" ixy="0.0" ixz="0.0" iyy="0.005" iyz="0.0" izz="0.006"/>
  </inertial>
  <visual>
   <origin xyz="0.0 0.0 0.2" rpy="0.0 0.0 0.0"/>
   <geometry>
    <cylinder radius="0.05" length="0.4"/>
   </geometry>
   <material name="#0080ff"/>
  </visual>
  <visual>
   <origin xyz="0.0 0.0 0.0" rpy="0.0 0.0 0.0"/>
   <geometry>
    <sphere radius="0.06"/>
   </geometry>
   <material name="#102030"/>
  </visual>
 </link>
 <joint name="m0.hinge" type="revolute">
  <origin xyz="0.0 0.0 0.1" rpy="0.0 0.0 0.0"/>
  <parent link="world"/>
  <child link="m0.B"/>
  <axis xyz="0.0 1.0 0.0"/>
  <limit lower="-0.5" upper="1.5" effort="1000000000.0" velocity="1000000000.0"/>
  <dynamics damping="0.25" friction="0.125"/>
 </joint>
</robot>
"""

ROS2_CONTROL = """\
 <ros2_control name="organism" type="system">
  <hardware>
   <plugin>mock_components/GenericSystem</plugin>
  </hardware>
  <joint name="m0.hinge">
   <command_interface name="position">
    <param name="min">-0.5</param>
    <param name="max">1.5</param>
   </command_interface>
   <state_interface name="position"/>
   <state_interface name="velocity"/>
   <state_interface name="effort"/>
  </joint>
  <transmission name="m0.hinge:transmission">
   <plugin>transmission_interface/SimpleTransmission</plugin>
   <actuator name="m0.hinge:motor" role="actuator1"/>
   <joint name="m0.hinge" role="joint1">
    <mechanical_reduction>1.0</mechanical_reduction>
   </joint>
  </transmission>
 </ros2_control>
</robot>
"""

SRDF = f"""\
{XML}
<robot name="organism">
 <group name="all">
  <joint name="m0.hinge"/>
  <joint name="m1.hinge"/>
 </group>
 <group name="m1.B">
  <chain base_link="m0.A" tip_link="m1.B"/>
 </group>
 <group_state name="zero" group="all">
  <joint name="m0.hinge" value="0.25"/>
  <joint name="m1.hinge" value="0.0"/>
 </group_state>
 <virtual_joint name="base" type="floating" parent_frame="world" child_link="m0.A"/>
 <disable_collisions link1="m0.A" link2="m0.B" reason="Adjacent"/>
 <disable_collisions link1="m0.A" link2="m1.A" reason="Adjacent"/>
 <disable_collisions link1="m0.A" link2="m1.B" reason="Never"/>
 <disable_collisions link1="m0.B" link2="m1.A" reason="Adjacent"/>
 <disable_collisions link1="m0.B" link2="m1.B" reason="Adjacent"/>
 <disable_collisions link1="m1.A" link2="m1.B" reason="Adjacent"/>
</robot>
"""

COBRA_BODY = """\
   "bodies": [
    {
     "ID": "A",
     "mass": 2.0,
     "inertia": [
      [0.01, 0.0, 0.0],
      [0.0, 0.02, 0.0],
      [0.0, 0.0, 0.03]
     ],
     "r_com": [0.0, 0.0, 0.05],
     "connectors": [
      {
       "ID": "1",
       "pose": [
        [1.0, 0.0, 0.0, 0.0],
        [0.0, -1.0, 0.0, 0.0],
        [0.0, 0.0, -1.0, -0.1],
        [0.0, 0.0, 0.0, 1.0]
       ],
       "gender": "h",
       "type": "plug",
       "size": []
      },
      {
       "ID": "1@90",
       "pose": [
        [0.0, -1.0, 0.0, 0.0],
        [-1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, -1.0, -0.1],
        [0.0, 0.0, 0.0, 1.0]
       ],
       "gender": "h",
       "type": "plug",
       "size": []
      },
      {
       "ID": "base",
       "pose": [
        [1.0, 0.0, 0.0, 0.0],
        [0.0, -1.0, 0.0, 0.0],
        [0.0, 0.0, -1.0, 0.0],
        [0.0, 0.0, 0.0, 1.0]
       ],
       "gender": "f",
       "type": "base",
       "size": []
      }
     ],
"""
COBRA_JOINTS = """\
   "joints": [
    {
     "ID": "hinge",
     "parent": "A",
     "child": "B",
     "type": "revolute",
     "passive": false,
     "poseParent": [
      [0.0, 1.0, 0.0, 0.0],
      [0.0, 0.0, 1.0, 0.0],
      [1.0, 0.0, 0.0, 0.1],
      [0.0, 0.0, 0.0, 1.0]
     ],
     "poseChild": [
      [0.0, 0.0, 1.0, 0.0],
      [1.0, 0.0, 0.0, 0.0],
      [0.0, 1.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 1.0]
     ],
     "limits": {"positionLower": -0.5, "positionUpper": 1.5, \
"peakTorque": Infinity, "velocity": Infinity, "acceleration": Infinity},
     "gearRatio": 1.0,
     "motorInertia": 0.0,
     "frictionCoulomb": 0.125,
     "frictionViscous": 0.25
    }
   ]
  }
 ]
}
"""


def test_mjcf_of_a_module(tmp_path):
    write_mjcf(Organism.start(JACK), tmp_path / "it.xml", hinges="physical")
    text = (tmp_path / "it.xml").read_text("utf-8")
    # LAPACK chooses the signs of principal axes
    assert re.sub('(<inertial pos="[^"]*") quat="[^"]*"', r"\1", text) == MJCF


def test_urdf_of_a_module(tmp_path):
    write_urdf(Organism.start(JACK), tmp_path / "it.urdf", hinges="physical")
    assert (tmp_path / "it.urdf").read_text("utf-8") == URDF


def test_ros2_control_of_a_module(tmp_path):
    """The rest of the file is as without."""
    write_urdf(
        Organism.start(JACK), tmp_path / "it.urdf", hinges="physical", ros2_control="position"
    )
    text = (tmp_path / "it.urdf").read_text("utf-8")
    assert text == URDF.removesuffix("</robot>\n") + ROS2_CONTROL


def test_srdf_of_two_modules(tmp_path):
    """The first hinge cannot go to zero: its limits begin at 0.25."""
    two = Organism.start(JACK).dock("m0", 2, "m1", 1).with_parameters("m0", limits=(0.25, 1.5))
    write_srdf(two, tmp_path / "it.srdf", hinges="physical", base="free", samples=20)
    assert (tmp_path / "it.srdf").read_text("utf-8") == SRDF


def test_cobra_of_a_module(tmp_path):
    write_cobra_modules([JACK], tmp_path / "it.json", date=datetime.date(2024, 1, 2))
    text = (tmp_path / "it.json").read_text("utf-8")
    assert text.startswith(
        '{\n "modules": [\n  {\n   "header": {\n    "ID": "jack",\n    "name": "Jack",\n'
        '    "date": "2024-01-02",\n    "author": ["modurob"],\n    "email": [],\n'
    )
    assert '"cost": 0.0\n   },\n' + COBRA_BODY in text  # its first body, with one line a vector
    assert text.endswith(COBRA_JOINTS)
